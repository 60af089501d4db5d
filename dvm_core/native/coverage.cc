#include "coverage.h"

#include <algorithm>

namespace dvm {

Coverage::Coverage(const AreaCode& area, const ProgramCode& code, void* const* base) {
  std::vector<bool> whole(area.slots.size(), false);
  for (const Join& j : area.joins) whole[static_cast<size_t>(j.result)] = true;
  for (const uint64_t* w = area.code; *w; w += head_len(*w))
    if (is_global(head_dst(*w)) && head_id(*w) != Tile::kStore && head_id(*w) != Tile::kStoreView) whole[head_dst(*w) & (kGlobal - 1)] = true;
  for (size_t s = 0; s < area.slots.size(); ++s) {
    const GlobalSlot& slot = area.slots[s];
    if (!slot.written || whole[s]) continue;
    const int instr = code.instr_of(slot.value);
    const Instr& in = code.instrs[static_cast<size_t>(instr)];
    const auto bytes = static_cast<size_t>(in.shape.size() * item_size(in.dtype));
    results_.push_back({static_cast<uint32_t>(s), instr, static_cast<const uint8_t*>(base[s]), std::vector<uint8_t>(bytes, 0)});
  }
}

void Coverage::mark(uint32_t slot, const void* to, int64_t rows, int64_t bytes, int64_t stride) {
  for (Result& r : results_) {
    if (r.slot != slot) continue;
    const int64_t first = static_cast<const uint8_t*>(to) - r.from;
    const auto end = static_cast<int64_t>(r.times.size());
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t from = std::clamp<int64_t>(first + row * stride, 0, end), to_end = std::clamp<int64_t>(first + row * stride + bytes, 0, end);
      for (int64_t b = from; b < to_end; ++b) r.times[static_cast<size_t>(b)] |= static_cast<uint8_t>(r.times[static_cast<size_t>(b)] + 1);
    }
  }
}

std::string Coverage::fault(int32_t* instr) const {
  for (const Result& r : results_) {
    const auto wrong = std::find_if(r.times.begin(), r.times.end(), [](uint8_t times) { return times != 1; });
    if (wrong == r.times.end()) continue;
    *instr = r.instr;
    const auto end = std::find_if(wrong, r.times.end(), [&](uint8_t times) { return times != *wrong; });
    return "bytes " + std::to_string(wrong - r.times.begin()) + " to " + std::to_string(end - r.times.begin() - 1) + kCoverageFault +
           (*wrong ? "written more than once" : "never written");
  }
  return "";
}

}  // namespace dvm
