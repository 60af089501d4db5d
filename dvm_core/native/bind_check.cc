// What a simulated device knows of its own tile code: who holds which bytes of the UB, and pairs of instructions that nothing orders.
#include <bit>

#include "bind_common.h"
#include "disasm.h"
#include "optable.h"
#include "orders.h"
#include "profile.h"
#include "segment.h"
#include "ubcheck.h"

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

nb::tuple range_of(const UbUse::Range& r) { return nb::make_tuple(r.from, r.to); }

std::vector<uint64_t> sync_of(const AreaCode& area) {
  std::vector<uint64_t> sync;
  for (const UbUse& use : area.uses) {
    const uint64_t* w = area.code + use.word;
    sync.push_back(head_synced(*w) ? w[head_len(*w) - 1] : 0);
  }
  return sync;
}

nb::list uses_of(const AreaCode& area, const std::vector<UbUse>& uses) {
  nb::list out;
  for (const UbUse& use : uses) {
    nb::dict d;
    d["instruction"] = use.instr;
    d["pipe"] = pipe_name(use.pipe);
    d["write"] = range_of(use.write);
    nb::list reads;
    for (const UbUse::Range& r : use.read)
      if (r.to > r.from) reads.append(range_of(r));
    d["read"] = reads;
    d["text"] = area.code[use.word] ? instruction_text(area, area.code + use.word) : "(none)";
    out.append(d);
  }
  return out;
}

nb::dict buffer_of(const std::vector<GlobalSlot>* slots, const UbBuffer& b) {
  nb::dict d;
  d["bytes"] = range_of(b.bytes);
  d["dtype"] = static_cast<int>(b.dtype);
  d["instruction"] = b.instr;
  d["value"] = b.slot >= 0 && slots && (*slots)[static_cast<size_t>(b.slot)].kind <= GlobalSlot::kWorkspace ? (*slots)[static_cast<size_t>(b.slot)].value : -1;
  d["loaded"] = b.slot >= 0;
  d["first"] = b.first;
  d["last"] = b.last;
  d["pinned"] = b.pinned;
  return d;
}

nb::list races_of(const AreaCode& area, const std::vector<UbUse>& uses) {
  nb::list found;
  for (const Race& r : find_races(uses, sync_of(area))) {
    nb::dict d;
    d["kind"] = r.kind;
    d["first"] = r.first;
    d["second"] = r.second;
    d["instructions"] = nb::make_tuple(uses[static_cast<size_t>(r.first)].instr, uses[static_cast<size_t>(r.second)].instr);
    d["pipes"] = nb::make_tuple(pipe_name(uses[static_cast<size_t>(r.first)].pipe), pipe_name(uses[static_cast<size_t>(r.second)].pipe));
    d["tiles_apart"] = r.tiles_apart;
    d["bytes"] = range_of(r.bytes);
    found.append(d);
  }
  return found;
}

// Events by (from, to): how many of the eight are used.
nb::dict events_of(const AreaCode& area, const std::vector<UbUse>& uses) {
  unsigned used[kPipes][kPipes] = {};
  const std::vector<uint64_t> sync = sync_of(area);
  for (size_t u = 0; u < uses.size(); ++u)
    for (int o = 0; o < kPipes; ++o)
      for (const Sync field : {Sync::kSet, Sync::kBackSet})
        if (const int event = sync_event(sync[u], field, static_cast<Pipe>(o)); event >= 0) used[static_cast<int>(uses[u].pipe)][o] |= 1u << event;
  nb::dict d;
  for (int from = 0; from < kPipes; ++from)
    for (int to = 0; to < kPipes; ++to)
      if (used[from][to]) d[nb::make_tuple(pipe_name(static_cast<Pipe>(from)), pipe_name(static_cast<Pipe>(to)))] = std::popcount(used[from][to]);
  return d;
}

// All that is known of one area. What a plain move has not is empty; the cpu's code, whose values lie in its caches, has no UB at all.
nb::dict area_check(const AreaCode& area, const AreaInfo& info) {
  const bool has_ub = area.profile != nullptr;
  const std::vector<UbUse> uses = has_ub ? uses_in_force(area) : std::vector<UbUse>();
  nb::dict d;
  d["kind"] = info.kind;
  d["instructions"] = from_ints(info.instrs);
  d["cut_reason"] = info.cut_reason;
  d["tiles"] = info.tiles;
  d["tile"] = nb::make_tuple(info.tile_rows, info.tile_cols);
  d["device"] = area.profile ? area.profile->name : "cpu";
  d["peak"] = area.ub_peak;
  d["limit"] = area.profile ? ub_room(*area.profile) : 0;
  d["uses"] = uses_of(area, uses);
  d["events"] = events_of(area, uses);
  nb::list buffers;
  nb::list overwrites, aliases, unstored;
  std::vector<int> held;
  int at = 0;
  if (has_ub) {
    for (const UbBuffer& b : area.buffers) buffers.append(buffer_of(&area.slots, b));
    at = fullest(area);
    held = live_at(area, at);
    for (const Overwrite& o : find_overwrites(area, uses)) overwrites.append(nb::make_tuple(o.made, o.over, o.reader, range_of(o.bytes)));
    for (const Alias& a : find_aliases(uses)) aliases.append(nb::make_tuple(a.use, range_of(a.bytes)));
    for (const int s : find_unstored(area)) unstored.append(area.slots[static_cast<size_t>(s)].value);
  }
  d["buffers"] = buffers;
  d["fullest"] = at;
  d["held"] = from_ints(held);
  d["races"] = races_of(area, uses);
  d["overwrites"] = overwrites;
  d["aliases"] = aliases;
  d["unstored"] = unstored;
  return d;
}

void segment_check(const Segment& segment, nb::list areas, nb::list overflows) {
  for (size_t a = 0; a < segment.areas.size(); ++a) areas.append(area_check(segment.areas[a], segment.view.areas[a]));
  for (const Overflow& o : segment.overflows) {
    nb::list held;
    for (const UbBuffer& b : o.held) held.append(buffer_of(nullptr, b));
    nb::dict d;
    d["instructions"] = from_ints(o.instrs);
    d["bytes"] = o.bytes;
    d["limit"] = o.room;
    d["tile"] = nb::make_tuple(o.tile_rows, o.tile_cols);
    d["held"] = held;
    overflows.append(d);
  }
}

// Of the last launch, or compiled for another device.
nb::dict check(Program& p, const std::string& device) {
  nb::list areas, overflows;
  if (!device.empty()) segment_check(*p.compiled_for(find_profile(device)), areas, overflows);
  else
    for (const SegmentPtr& s : p.last().segments) segment_check(*s->segment, areas, overflows);
  nb::dict d;
  d["areas"] = areas;
  d["overflows"] = overflows;
  return d;
}

nb::dict ub_map(Program& p, int64_t number) {
  SegmentPtr hold;
  const AreaCode& area = simulated_area(p, number, &hold);
  const auto [segment, at] = find_area(p, number);
  return area_check(area, segment->segment->view.areas[static_cast<size_t>(at)]);
}

nb::list races(Program& p, int64_t number) {
  SegmentPtr hold;
  const AreaCode& area = simulated_area(p, number, &hold);
  return races_of(area, uses_in_force(area));
}

// Where in the UB a fault sends an instruction's result: behind the start of its operand, or over another value that is still read.
int64_t wrong_place(const AreaCode& area, const UbUse& use, int64_t number, bool alias) {
  const int64_t size = use.write.to - use.write.from;
  if (alias) {
    for (const UbUse::Range& r : use.read)
      if (r.to > r.from && r.from + kUbUnit + size <= area.ub_bytes) return r.from + kUbUnit;
  } else if (size > 0) {
    for (const UbBuffer& b : area.buffers)
      if (b.first < number && b.last > number && b.bytes.from + size <= area.ub_bytes) return b.bytes.from;
  }
  throw UserError("no place for that fault at tile instruction " + std::to_string(number));
}

nb::list sum_spreads() {
  nb::list out;
  for (const Spread& s : take_spreads()) {
    nb::dict d;
    d["op"] = op_name(s.op);
    d["place"] = s.place;
    d["shape"] = from_dims(s.shape);
    d["dtype"] = static_cast<int>(s.dtype);
    d["parts"] = s.parts;
    d["orders"] = s.orders;
    d["elements"] = s.elements;
    d["differing"] = s.differing;
    d["worst"] = s.worst;
    d["lowest"] = s.lowest;
    d["highest"] = s.highest;
    out.append(d);
  }
  return out;
}

// The tile code in force is replaced by a copy with one fault in it.
void plant_in_code(Program& p, int64_t number, int64_t use, const std::string& fault) {
  SegmentPtr hold;
  AreaCode& area = simulated_area(p, number, &hold);
  std::lock_guard running(hold->running);
  if (use < 0 || use >= static_cast<int64_t>(area.uses.size())) throw UserError("no tile instruction " + std::to_string(use));
  const auto faulty = std::make_shared<TileWords>(*area.tile);
  uint64_t* w = faulty->words.data() + area.uses[static_cast<size_t>(use)].word;
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
  } else if (fault == "missing") {
    *w = 0;
  } else if (fault == "over" || fault == "alias") {
    const int64_t place = wrong_place(area, area.uses[static_cast<size_t>(use)], use, fault == "alias");
    *w = (*w & ~(static_cast<uint64_t>(kOperandMask) << 22)) | static_cast<uint64_t>(place / kUbUnit) << 22;
  } else {
    throw UserError("there is no fault \"" + fault + "\" of tile code; there are deaf, short, stuck, missing, over and alias");
  }
  area.code = faulty->words.data();
  area.tile = faulty;
}

}  // namespace

void bind_check(nb::module_& m) {
  m.def(
      "ub_map", [](int64_t program, int64_t area) { return ub_map(*program_by_id(program), area); }, "program"_a, "area"_a,
      "The UB of an area compiled for a simulated device: what `check` says of it.");
  m.def(
      "check", [](int64_t program, const std::string& device) { return check(*program_by_id(program), device); }, "program"_a, "device"_a = "",
      "What is known of a program's tile code: of its last launch, or compiled for a device at the last shapes. areas, overflows.");
  m.def(
      "races", [](int64_t program, int64_t area) { return races(*program_by_id(program), area); }, "program"_a, "area"_a,
      "Pairs of tile instructions of an area that touch the same bytes with nothing to order them.");
  m.def("set_deterministic", &set_deterministic, "enabled"_a, "Whether faithful devices add partial sums in one fixed order (at first) or as they arrive.");
  m.def("set_sum_orders", &set_sum_orders, "orders"_a, "How many orders of every sum over several parts simulated devices try, 0 at first.");
  m.def("sum_spreads", &sum_spreads,
        "What the orders tried gave since the last call: op, place, shape, dtype, parts, orders, elements, differing, worst, "
        "lowest, highest.");
  m.def("set_ub_room", &set_ub_room, "bytes"_a, "For tests: how much of the UB values may take on simulated devices; 0: what their profiles say.");
  m.def(
      "plant_in_code", [](int64_t program, int64_t area, int64_t use, const std::string& fault) { plant_in_code(*program_by_id(program), area, use, fault); },
      "program"_a, "area"_a, "use"_a, "fault"_a,
      "For tests: a fault in an area's code: deaf (an instruction waits for nobody), short (makes one element), stuck (stores to the same place), missing "
      "(it and what follows is not there), over (its result lies over another value), alias (over part of its operand).");
}

}  // namespace dvm
