#include "coverage.h"

#include <algorithm>

namespace dvm {

Coverage::Coverage(const AreaCode& area, void* const* base) {
  for (size_t w = 0; area.words[w]; w += static_cast<size_t>(head_len(area.words[w]))) {
    const uint64_t head = area.words[w];
    if (head_id(head) != Tile::kStore && head_id(head) != Tile::kStoreView) continue;
    const uint32_t slot = head_dst(head) & (kGlobal - 1);
    const int64_t elements = head_span(head) == Span::kRow ? area.space.rows : area.space.rows * area.space.cols;
    const auto bytes = static_cast<size_t>(elements * item_size(static_cast<DType>(head_dtype(head))));
    results_.push_back({slot, area.instr[w], static_cast<const uint8_t*>(base[slot]), std::vector<uint8_t>(bytes, 0)});
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
    return "bytes " + std::to_string(wrong - r.times.begin()) + " to " + std::to_string(end - r.times.begin() - 1) + " of its result are " +
           (*wrong ? "written more than once" : "never written");
  }
  return "";
}

}  // namespace dvm
