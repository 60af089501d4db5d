#include "segment.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "disasm.h"
#include "encode.h"
#include "interp.h"
#include "memory.h"
#include "optable.h"
#include "passes.h"
#include "pool.h"
#include "spent.h"
#include "stack.h"
#include "tile.h"
#include "ubcheck.h"
#include "workspace.h"

namespace dvm {
namespace {

// Which values are in memory after their area, and the lives of those that the workspace holds.
void plan_values(const ProgramCode& code, int begin, int end, const std::vector<uint8_t>& keep, const Fusing& f, std::vector<uint8_t>* stored,
                 std::vector<Lifetime>* lifetimes) {
  const int inputs = static_cast<int>(code.inputs.size());
  std::vector<int> last(static_cast<size_t>(end), -1);
  for (int i = begin; i < end; ++i) {
    const int area = f.area_of[static_cast<size_t>(i)];
    if (area < 0) continue;
    const bool whole = f.areas[static_cast<size_t>(area)].kind == AreaKind::kMove || f.extent[static_cast<size_t>(i)] >= Extent::kJoined;
    if (keep[static_cast<size_t>(inputs + i)] || whole) {
      (*stored)[static_cast<size_t>(inputs + i)] = 1;
      last[static_cast<size_t>(i)] = std::max(last[static_cast<size_t>(i)], area);
    }
    for (int32_t o : code.instrs[static_cast<size_t>(i)].operands) {
      if (o < 0) continue;
      const int root = f.resolved.access[static_cast<size_t>(o)].root, producer = root - inputs;
      if (producer < begin || f.area_of[static_cast<size_t>(producer)] < 0 || f.area_of[static_cast<size_t>(producer)] == area) continue;
      (*stored)[static_cast<size_t>(root)] = 1;
      last[static_cast<size_t>(producer)] = std::max(last[static_cast<size_t>(producer)], area);
    }
  }
  for (size_t a = 0; a < f.areas.size(); ++a)
    for (int i : f.areas[a].instrs) {
      const auto v = static_cast<size_t>(inputs + i);
      if (!(*stored)[v] || keep[v]) continue;
      const Instr& in = code.instrs[static_cast<size_t>(i)];
      lifetimes->push_back({inputs + i, in.shape.size() * item_size(in.dtype), static_cast<int>(a), last[static_cast<size_t>(i)]});
    }
}

// The segment of a near shape whose tile code this one's is, area by area; -1: there is none.
int near_segment(const Segment& s, const CompileOptions& options) {
  const auto same = [](const AreaCode& a, const AreaCode& b) { return a.layout == b.layout && (a.layout || a.move >= 0); };
  for (size_t n = 0; n < options.near.size(); ++n)
    if (std::ranges::equal(s.areas, options.near[n]->areas, same)) return static_cast<int>(n);
  return -1;
}

// All tile code in one run of read-only pages, those of a near shape if it is the same.
void place_code(Segment* s, const CompileOptions& options) {
  s->view.joined = near_segment(*s, options);
  if (s->view.joined >= 0) {
    s->pages = options.near[static_cast<size_t>(s->view.joined)]->pages;
  } else {
    std::vector<uint64_t> words;
    for (const AreaCode& a : s->areas) {
      if (!a.tile) continue;
      words.insert(words.end(), a.tile->prologue.begin(), a.tile->prologue.end());
      words.insert(words.end(), a.tile->words.begin(), a.tile->words.end());
    }
    s->pages = std::make_shared<const CodePages>(words);
  }
  const uint64_t* at = s->pages->data();
  for (AreaCode& a : s->areas) {
    if (!a.tile) continue;
    a.prologue = at;
    at += a.tile->prologue.size();
    a.code = at;
    at += a.tile->words.size();
  }
}

// What runs: the areas' code, who runs beside whom, and where values between areas lie.
void log_code(const Segment& s, PassLog* log) {
  std::string memory, stacks;
  for (size_t a = 0; a < s.areas.size(); ++a) log->add("Encode", "area " + std::to_string(a) + " " + disassemble(s.areas[a]));
  for (size_t a = 0; a < s.areas.size(); a = static_cast<size_t>(s.stack_end[a])) {
    const int last = s.stack_end[a] - 1;
    stacks += "area " + std::to_string(a) + (last > static_cast<int>(a) ? " to " + std::to_string(last) + " side by side" : "") + "\n";
  }
  for (const SlotInfo& slot : s.view.slots)
    memory += "%" + std::to_string(slot.value) + " at " + std::to_string(slot.offset) + ", " + std::to_string(slot.bytes) + " bytes, areas " +
              std::to_string(slot.first_area) + " to " + std::to_string(slot.last_area) +
              (slot.in_place_of >= 0 ? ", over %" + std::to_string(slot.in_place_of) : "") + "\n";
  log->add("Stack", stacks);
  log->add("PlanMemory", memory);
}

AreaInfo describe(const Area& area, const AreaCode& code) {
  const Geometry& g = code.space;
  const int64_t per_block = (g.block_rows + g.tile_rows - 1) / g.tile_rows;
  return {kind_name(code.kind), area.instrs, area.cut, code.move >= 0 ? 1 : g.units() * per_block, g.tile_rows, g.tile_cols, 0};
}

// On a device with a UB of its own: tiles that give every core something to do and fit. Null if not even the smallest tile does.
std::optional<AreaCode> encode_to_fit(const EncodeInput& input, int area, std::vector<Overflow>* overflows) {
  constexpr int64_t kLeast = 512, kMost = 8192;
  if (!input.profile.simulated) return encode(input, area);
  const int64_t room = ub_room(input.profile);
  EncodeInput tried = input;
  tried.log = nullptr;
  if (!tried.tile_elements)
    tried.tile_elements = std::clamp(input.fusing.areas[static_cast<size_t>(area)].elements / input.profile.vector_cores, kLeast, kMost);
  for (;;) {
    AreaCode code = encode(tried, area);
    if (code.ub_peak <= room) {
      if (!input.log) return code;
      tried.log = input.log;
      return encode(tried, area);
    }
    const int64_t tile = code.space.tile_rows * code.space.tile_cols;
    if (tried.tile_elements <= 1 || code.move >= 0) {
      Overflow o{input.fusing.areas[static_cast<size_t>(area)].instrs, code.ub_peak, room, code.space.tile_rows, code.space.tile_cols, {}};
      for (const int b : live_at(code, fullest(code))) o.held.push_back(code.buffers[static_cast<size_t>(b)]);
      overflows->push_back(std::move(o));
      return std::nullopt;
    }
    tried.tile_elements = std::min(tried.tile_elements, tile) / 2;
  }
}

UserError does_not_fit(const ProgramCode& code, const Overflow& o, const std::string& device) {
  const Instr& in = code.instrs[static_cast<size_t>(o.instrs[0])];
  std::string held;
  for (const UbBuffer& b : o.held)
    held += (held.empty() ? ": " : ", ") + std::to_string(b.bytes.to - b.bytes.from) + " for " +
            (b.slot >= 0              ? "an operand"
             : b.instr == o.instrs[0] ? "the result"
                                      : "a value on the way");
  return UserError(std::string(op_name(in.op)) + " of " + type_text(in.dtype, in.shape) + " does not fit the local memory of " + device + ", " +
                       std::to_string(o.room) + " bytes, in the smallest tile there is, which needs " + std::to_string(o.bytes) + held,
                   in.place);
}

// compile() within limits. Null if an area does not fit the device's UB, which is then the last of the overflows.
std::shared_ptr<Segment> compile_within(const ProgramCode& code, int begin, int end, const std::vector<uint8_t>& keep, const std::vector<HookSite>& hooks,
                                        const CompileOptions& options, const FuseLimits& limits, std::vector<Overflow>* overflows) {
  const Profile& profile = options.profile ? *options.profile : profile_at(0);
  const int inputs = static_cast<int>(code.inputs.size());
  std::vector<uint8_t> kept = keep, hooked(static_cast<size_t>(end), 0), stored(static_cast<size_t>(inputs + end), 0);
  kept.resize(static_cast<size_t>(inputs) + code.instrs.size(), 0);
  for (const HookSite& h : hooks)
    if (h.instr >= begin && h.instr < end && (h.kind == kHookStats || h.kind == kHookCheck)) hooked[static_cast<size_t>(h.instr)] = 1;
  const int64_t start = now_ns();
  Fusing fusing = fuse(code, begin, end, kept, hooked, limits);
  std::vector<Lifetime> lifetimes;
  plan_values(code, begin, end, kept, fusing, &stored, &lifetimes);
  if (options.log) {
    options.log->passes.clear();
    options.log->add_fusing(code, begin, end, fusing);
  }
  const int64_t fused = now_ns();

  auto segment = std::make_shared<Segment>();
  EncodeInput input{code, fusing, kept, stored, hooks, options.tile_elements, profile, options.log};
  for (const auto& near : options.near)
    if (near->areas.size() == fusing.areas.size()) input.near.push_back(&near->areas);
  segment->areas.reserve(fusing.areas.size());
  for (int a = 0; a < static_cast<int>(fusing.areas.size()); ++a) {
    std::optional<AreaCode> made = encode_to_fit(input, a, overflows);
    if (!made) return nullptr;
    segment->areas.push_back(std::move(*made));
  }
  segment->stack_end = stack(segment->areas);
  segment->view.workspace_bytes = plan_workspace(lifetimes, segment->stack_end, &segment->areas, &segment->view.slots, &segment->view.scratch);
  segment->view.over_inputs = results_over_inputs(segment->areas, segment->stack_end, inputs);
  if (options.log) log_code(*segment, options.log);
  place_code(segment.get(), options);
  for (size_t a = 0; a < fusing.areas.size(); ++a) segment->view.areas.push_back(describe(fusing.areas[a], segment->areas[a]));
  for (size_t a = 0, first = 0; a < segment->areas.size(); ++a) {
    if (a > 0 && segment->stack_end[a] != segment->stack_end[a - 1]) first = a;
    segment->view.areas[a].stack_first = static_cast<int>(first);
    segment->view.areas[a].stack_end = segment->stack_end[a];
  }

  segment->view.folded_into = std::move(fusing.folded_into);
  segment->view.folded_into.resize(code.instrs.size(), -1);
  for (int i = begin; i < end; ++i) {
    if (fusing.resolved.work[static_cast<size_t>(i)] != Work::kView) continue;
    const Access& a = fusing.resolved.access[static_cast<size_t>(inputs + i)];
    const int producer = a.root - inputs;
    if (producer >= begin && !kept[static_cast<size_t>(a.root)]) continue;
    if (producer >= 0 && is_uniform(fusing.resolved.work[static_cast<size_t>(producer)])) continue;
    const Instr& in = code.instrs[static_cast<size_t>(i)];
    segment->views.push_back({inputs + i, a.root, a.offset, in.shape, a.strides});
  }
  segment->paces.resize(segment->areas.size());
  SegmentView& seen = segment->view;
  for (const AreaCode& a : segment->areas) seen.tile_ns += a.tile_ns;
  seen.fuse_ns = fused - start;
  seen.encode_ns = now_ns() - fused - seen.tile_ns;
  return segment;
}

}  // namespace

std::shared_ptr<Segment> compile(const ProgramCode& code, int begin, int end, const std::vector<uint8_t>& keep, const std::vector<HookSite>& hooks,
                                 const CompileOptions& options) {
  FuseLimits limits;
  limits.unfused = options.unfused;
  if (options.profile && options.profile->simulated) limits.longest_row = options.profile->longest_row;
  std::vector<Overflow> overflows;
  for (;;) {
    if (std::shared_ptr<Segment> made = compile_within(code, begin, end, keep, hooks, options, limits, &overflows)) {
      made->overflows = std::move(overflows);
      return made;
    }
    const Overflow& last = overflows.back();
    if (last.instrs.size() == 1) throw does_not_fit(code, last, options.profile->name);
    limits.longest_area = last.instrs.size() / 2;
  }
}

const SegmentView& view(const Segment& s) { return s.view; }

int64_t segment_bytes(const Segment& s) {
  const auto held = [](const auto& v) { return static_cast<int64_t>(v.capacity() * sizeof(v[0])); };
  int64_t n = sizeof(Segment) + held(s.areas) + held(s.paces) + held(s.stack_end) + held(s.views) + held(s.view.areas) + held(s.view.slots) +
              held(s.view.scratch) + held(s.view.over_inputs) + held(s.view.folded_into);
  for (const AreaCode& a : s.areas) {
    n += held(a.slots) + held(a.axes) + held(a.constants) + held(a.joins) + held(a.products) + held(a.convolutions) + held(a.hooks) + held(a.uses) +
         held(a.operands) + held(a.operand_strides);
    if (a.tile && s.view.joined < 0) {
      n += static_cast<int64_t>(sizeof(TileWords)) + held(a.tile->prologue) + held(a.tile->words) + held(a.tile->prologue_instr) + held(a.tile->instr) +
           held(a.tile->strips);
      for (const StripCode& strip : a.tile->strips) n += held(strip.steps) + held(strip.streams);
    }
    if (a.layout && s.view.joined < 0)
      n += static_cast<int64_t>(sizeof(TileLayout)) + held(a.layout->prologue) + held(a.layout->ops) + held(a.layout->registers);
  }
  for (const AreaInfo& a : s.view.areas) n += held(a.instrs) + held(a.kind) + held(a.cut_reason);
  return n + (s.view.joined < 0 ? static_cast<int64_t>(s.pages->size() * sizeof(uint64_t)) : 0);
}

std::string tile_text(const Segment& s, int area) { return disassemble(s.areas.at(static_cast<size_t>(area))); }

std::vector<uint64_t> tile_words(const Segment& s, int area) {
  const AreaCode& a = s.areas.at(static_cast<size_t>(area));
  if (!a.tile) return {};
  std::vector<uint64_t> words = a.tile->prologue;
  words.insert(words.end(), a.tile->words.begin(), a.tile->words.end());
  return words;
}

namespace {

// Nanoseconds of the launching thread in the areas of one run.
struct Worked {
  int64_t dispatch = 0, kernels = 0, waited = 0;
  void add(int64_t worked, int64_t waiting, double dispatch_share) {
    const auto dispatched = static_cast<int64_t>(dispatch_share * static_cast<double>(worked));
    dispatch += dispatched;
    kernels += worked - dispatched;
    waited += waiting;
  }
};

bool is_sampled(const Pace& pace) { return (pace.runs & (pace.runs - 1)) == 0 || pace.runs % 32 == 0; }

void run_one(Segment& segment, size_t a, RunIO& io, int64_t* before, Worked* all) {
  const int64_t waited_before = pool_waited_ns();
  Pace& pace = segment.paces[a];
  Sample sample{*before};
  const bool sampled = is_sampled(pace);
  ++pace.runs;
  run_area(segment.areas[a], io, sampled ? &sample : nullptr);
  const int64_t after = now_ns(), waited = pool_waited_ns() - waited_before, worked = after - *before - waited;
  if (sampled) pace.dispatch = sample.dispatch_share(worked);
  all->add(worked, waited, pace.dispatch);
  __atomic_store_n(&segment.view.areas[a].ns, after - *before, __ATOMIC_RELAXED);
  *before = after;
}

// Areas [a, end) side by side; the time goes to each by the work of its tiles. False: there is not enough work.
bool run_together(Segment& segment, size_t a, size_t end, RunIO& io, int64_t* before, Worked* all) {
  int64_t tiles[kLongestStack] = {}, sum = 0;
  const int64_t waited_before = pool_waited_ns();
  if (!run_stack(segment.areas.data() + a, static_cast<int>(end - a), io, tiles)) return false;
  const int64_t after = now_ns(), waited = pool_waited_ns() - waited_before, worked = after - *before - waited;
  for (size_t k = a; k < end; ++k) sum += tiles[k - a];
  for (size_t k = a; k < end; ++k) {
    const double share = sum ? static_cast<double>(tiles[k - a]) / static_cast<double>(sum) : 0;
    ++segment.paces[k].runs;
    all->add(static_cast<int64_t>(share * static_cast<double>(worked)), 0, segment.paces[k].dispatch);
    __atomic_store_n(&segment.view.areas[k].ns, static_cast<int64_t>(share * static_cast<double>(after - *before)), __ATOMIC_RELAXED);
  }
  all->waited += waited;
  *before = after;
  return true;
}

}  // namespace

void run(Segment& segment, RunIO& io) {
  int64_t before = now_ns();
  Worked all;
  for (size_t a = 0; a < segment.areas.size();) {
    const auto end = static_cast<size_t>(segment.stack_end[a]);
    // A sampled run takes the areas of a stack one by one.
    if (end - a == 1 || is_sampled(segment.paces[a]) || !run_together(segment, a, end, io, &before, &all))
      for (size_t k = a; k < end; ++k) run_one(segment, k, io, &before, &all);
    a = end;
  }
  if (io.times) {
    spend(*io.times, Phase::dispatch, all.dispatch, io.stands_for);
    spend(*io.times, Phase::kernels, all.kernels, io.stands_for);
    spend(*io.times, Phase::waiting, all.waited, io.stands_for);
  }
  fill_views(segment, io.values);
}

bool is_short(const Segment& segment) {
  return std::ranges::all_of(segment.areas, [](const AreaCode& a) { return is_short(a); });
}

void run_unmeasured(const Segment& segment, RunIO& io) {
  for (const AreaCode& area : segment.areas) run_area(area, io, nullptr);
  fill_views(segment, io.values);
}

void fill_views(const Segment& segment, std::vector<Value>* values) {
  for (const Segment::ViewOf& v : segment.views) {
    Value& value = (*values)[static_cast<size_t>(v.value)];
    const Value& root = (*values)[static_cast<size_t>(v.root)];
    if (value.data || !root.data) continue;
    value = {static_cast<uint8_t*>(root.data) + v.offset * item_size(root.dtype), root.dtype, v.shape, v.strides, root.owner};
  }
}

}  // namespace dvm
