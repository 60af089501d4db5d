// What a simulated device knows of its own tile code: who holds which bytes of the UB, and pairs of instructions that nothing orders.
#include "bind_common.h"
#include "profile.h"
#include "segment.h"

namespace dvm {

using namespace nb::literals;

namespace {

const char* pipe_name(Pipe p) {
  constexpr const char* names[kPipes] = {"load", "simd", "store"};
  return names[static_cast<int>(p)];
}

AreaCode& simulated_area(Program& p, int64_t area, SegmentPtr* hold) {
  const auto [segment, number] = find_area(p, area);
  *hold = segment;
  AreaCode& code = segment->segment->areas.at(static_cast<size_t>(number));
  if (!code.profile) throw UserError("area " + std::to_string(area) + " was not compiled for a simulated device: there is no UB map and nothing to wait for");
  return code;
}

std::vector<uint64_t> sync_of(const AreaCode& area) {
  std::vector<uint64_t> sync;
  for (const UbUse& use : area.uses) {
    const uint64_t* w = area.code + use.word;
    sync.push_back(head_synced(*w) ? w[head_len(*w) - 1] : 0);
  }
  return sync;
}

nb::dict ub_map(Program& p, int64_t number) {
  SegmentPtr hold;
  const AreaCode& area = simulated_area(p, number, &hold);
  nb::list uses;
  for (const UbUse& use : area.uses) {
    nb::dict d;
    d["instruction"] = use.instr;
    d["pipe"] = pipe_name(use.pipe);
    d["write"] = nb::make_tuple(use.write.from, use.write.to);
    nb::list reads;
    for (const UbUse::Range& r : use.read)
      if (r.to > r.from) reads.append(nb::make_tuple(r.from, r.to));
    d["read"] = reads;
    uses.append(d);
  }
  nb::dict d;
  d["device"] = area.profile->name;
  d["peak"] = area.ub_peak;
  d["limit"] = area.profile->ub_bytes - area.profile->ub_reserve;
  d["uses"] = uses;
  return d;
}

nb::list races(Program& p, int64_t number) {
  SegmentPtr hold;
  const AreaCode& area = simulated_area(p, number, &hold);
  nb::list found;
  for (const Race& r : find_races(area.uses, sync_of(area))) {
    nb::dict d;
    d["kind"] = r.kind;
    d["first"] = r.first;
    d["second"] = r.second;
    d["instructions"] = nb::make_tuple(area.uses[static_cast<size_t>(r.first)].instr, area.uses[static_cast<size_t>(r.second)].instr);
    d["pipes"] = nb::make_tuple(pipe_name(area.uses[static_cast<size_t>(r.first)].pipe), pipe_name(area.uses[static_cast<size_t>(r.second)].pipe));
    d["tiles_apart"] = r.tiles_apart;
    d["bytes"] = nb::make_tuple(r.bytes.from, r.bytes.to);
    found.append(d);
  }
  return found;
}

// The tile code in force is replaced by a copy with one fault in it.
void plant_in_code(Program& p, int64_t number, int64_t use, const std::string& fault) {
  SegmentPtr hold;
  AreaCode& area = simulated_area(p, number, &hold);
  std::lock_guard running(hold->running);
  if (use < 0 || use >= static_cast<int64_t>(area.uses.size())) throw UserError("no tile instruction " + std::to_string(use));
  uint64_t* w = area.words.data() + area.uses[static_cast<size_t>(use)].word;
  if (fault == "deaf") {
    if (head_synced(*w)) {
      uint64_t& sync = w[head_len(*w) - 1];
      for (int o = 0; o < kPipes; ++o)
        for (const Sync field : {Sync::kWait, Sync::kBackWait}) sync &= ~(15ull << (12 * int(field) + 4 * o));
      sync &= ~kBarrier;
    }
  } else if (fault == "short") {
    *w = (*w & ~(3ull << 17)) | static_cast<uint64_t>(Span::kOne) << 17;
  } else if (fault == "stuck") {
    GlobalSlot& slot = area.slots.at(head_dst(*w) & (kGlobal - 1));
    slot.row_step = slot.col_step = 0;
  } else {
    throw UserError("there is no fault \"" + fault + "\" of tile code; there are deaf, short and stuck");
  }
  area.code = area.words.data();
}

}  // namespace

void bind_check(nb::module_& m) {
  m.def(
      "ub_map", [](int64_t program, int64_t area) { return ub_map(*program_by_id(program), area); }, "program"_a, "area"_a,
      "The UB of an area compiled for a simulated device: device, peak and limit in bytes, and of each tile instruction the ranges it writes and reads.");
  m.def(
      "races", [](int64_t program, int64_t area) { return races(*program_by_id(program), area); }, "program"_a, "area"_a,
      "Pairs of tile instructions of an area that touch the same bytes with nothing to order them.");
  m.def(
      "plant_in_code", [](int64_t program, int64_t area, int64_t use, const std::string& fault) { plant_in_code(*program_by_id(program), area, use, fault); },
      "program"_a, "area"_a, "use"_a, "fault"_a,
      "For tests: a fault in an area's code: deaf (an instruction waits for nobody), short (makes one element), stuck (stores to the same place).");
}

}  // namespace dvm
