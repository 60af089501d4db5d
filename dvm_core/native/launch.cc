#include "launch.h"

#include <algorithm>
#include <utility>

#include "device_memory.h"
#include "fork.h"
#include "optable.h"
#include "pool.h"
#include "snapshot.h"
#include "stream.h"

namespace dvm {
namespace {

std::atomic<int64_t> launches{0};

// Views, moves and constants have no tile code of their own to put a statistics instruction behind: they are measured in memory. So is
// everything where there is no tile code.
bool measured_in_memory(const Instr& instr, const Profile& profile) {
  if (profile.elsewhere) return true;
  const char cls = op_info(instr.op).cls;
  return cls == 'V' || cls == 'D' || cls == 'N';
}

// A view makes no value: what is wrong with it was wrong with its operand.
bool checkable(const Instr& instr) { return is_float(instr.dtype) && op_info(instr.op).cls != 'V'; }

}  // namespace

BufferTag tag_of(const Instr& instr, const char* cls, const Program& program, int instruction) {
  BufferTag tag;
  tag.name = instr.name;
  tag.cls = cls;
  tag.place = instr.place;
  tag.program = program.id;
  tag.instruction = instruction;
  return tag;
}

int64_t launch_count() { return launches.load(); }
int64_t count_launch() { return launches.fetch_add(1) + 1; }

Launch::Launch(Plan plan, StopHandler stop)
    : program(std::move(plan.program)),
      number(count_launch()),
      step(plan.step),
      stop_(std::move(stop)),
      code_(std::move(plan.code)),
      geometry_(std::move(plan.geometry)),
      count_(static_cast<int>(code_->instrs.size())),
      values_(std::move(plan.values)),
      leases_(std::move(plan.leases)),
      over_(std::move(plan.over)),
      wanted_(std::move(plan.keep)),
      keep_(wanted_),
      first_instruction_(instructions_run()) {
  plan_hooks(plan.passed_over);
}

void Launch::plan_hooks(const PassedOver& passed_over) {
  const int64_t index = program->launches.fetch_add(1, std::memory_order_relaxed);
  if (stop_) {
    check_mask_ = check_mask();
    const int64_t every = measure_every();
    measuring_ = every > 0 && index % every == 0;
  }
  if (program->hooked())
    for (const Hook& h : program->hooks()) {
      if (std::find(passed_over.begin(), passed_over.end(), std::pair(h.id, h.instruction)) != passed_over.end()) continue;
      if (h.due(index, step) && h.instruction < count_ && (stop_ || !(h.kind & (kHookStop | kHookCheck)))) (h.of_input() ? of_inputs_ : hooks_).push_back(h);
    }
  if (hooks_.empty() && !check_mask_ && !measuring_) return;

  bool checking = check_mask_ != 0 || measuring_;
  std::vector<uint8_t> kinds(static_cast<size_t>(count_), 0);
  for (const Hook& h : hooks_) {
    kinds[static_cast<size_t>(h.instruction)] |= static_cast<uint8_t>(h.kind);
    checking = checking || h.kind == kHookCheck;
    if (h.kind == kHookCapture) keep(h.instruction) = 1;
    if (h.kind == kHookStop && (stops_.empty() || stops_.back() != h.instruction)) stops_.push_back(h.instruction);
  }
  // What the debugger may look at is all there: before the last stop, and everywhere once a check may report.
  const int all_kept = checking ? count_ : stops_.empty() ? 0 : stops_.back();
  for (int i = 0; i < all_kept; ++i) keep(i) = 1;

  for (int i = 0; i < count_; ++i) {
    const Instr& instr = code_->instrs[static_cast<size_t>(i)];
    const int wanted = kinds[static_cast<size_t>(i)] | (check_mask_ ? kHookCheck : 0) | (measuring_ && checkable(instr) ? kHookStats : 0);
    const auto measure = [&](int kind, int64_t slot) {
      if (measured_in_memory(instr, profile_)) {
        keep(i) = 1;
        after_.push_back({i, kind, slot});
      } else {
        sites_.push_back({i, kind, slot});
      }
    };
    if (wanted & kHookStats) {
      measure(kHookStats, static_cast<int64_t>(stats_.size()));
      stats_.emplace_back();
    }
    if ((wanted & kHookCheck) && checkable(instr)) {
      measure(kHookCheck, static_cast<int64_t>(checks_.size()));
      checks_.push_back(0);
    }
  }
}

void Launch::run() {
  if (!profile_.simulated)
    for (size_t i = 0; i < code_->inputs.size(); ++i)
      if (on_device(values_[i].data)) values_[i] = host_value(values_[i]);
  if (!of_inputs_.empty()) publish_inputs();
  int announced = -1;
  for (;;) {
    const auto at = std::find_if(stops_.begin(), stops_.end(), [&](int s) { return s > announced && s >= next(); });
    const int end = at == stops_.end() ? count_ : *at;
    if (end > next()) {
      std::lock_guard lock(mutex_);
      run_segment(next(), end, false);
    }
    if (at == stops_.end()) break;
    std::vector<int64_t> ids;
    for (const Hook& h : hooks_)
      if (h.kind == kHookStop && h.instruction == end) ids.push_back(h.id);
    stopped_.store(true);
    const SpanOf theirs(nullptr, Phase::bind);
    try {
      stop_(*this, end, "hook", ids);
    } catch (...) {
      stopped_.store(false);
      throw;
    }
    stopped_.store(false);
    // Wait for a run_until still at work; stops it went past, and the one it ended at, have been seen.
    std::lock_guard lock(mutex_);
    announced = std::max(end, next());
  }
  advance_instructions(count_);
  program->times->launches.fetch_add(1, std::memory_order_relaxed);
  program->times->instructions.fetch_add(count_, std::memory_order_relaxed);
  {
    const WhileRunning no_fork;
    program->set_last({segments_, wanted_, keep_});
  }
  if (!report_check()) report_measured();
}

void Launch::run_until(int instruction) {
  if (instruction < 0 || instruction > count_)
    throw UserError("run_until: no instruction " + std::to_string(instruction) + " in a program of " + std::to_string(count_));
  std::lock_guard lock(mutex_);
  if (!stopped_.load()) throw UserError("run_until: the launch is not stopped");
  if (instruction <= next()) return;
  for (int i = next(); i < instruction; ++i) keep(i) = 1;
  run_segment(next(), instruction, true);
}

// Not while no process may be forked: what runs there wants the GIL, and whoever forks may have it.
void Launch::run_elsewhere(int begin, int end) {
  allocate_kept(begin, end);
  {
    const SpanOf kernels(program->times.get(), Phase::kernels);
    (*profile_.elsewhere)(*code_, begin, end, keep_, values_);
  }
  measure_in_memory(begin, end);
  next_.store(end);
  publish_results(begin, end);
}

namespace {

// Memory for what an instruction makes. Error naming the instruction if there is none.
template <class F>
std::shared_ptr<Storage> memory_for(const Instr& instr, int64_t bytes, const char* what, F&& make) {
  const auto text = [&] { return std::string(op_name(instr.op)) + ": " + what + " " + type_text(instr.dtype, instr.shape); };
  try {
    return make();
  } catch (const std::bad_alloc&) { throw UserError(text() + ": no memory for " + std::to_string(bytes) + " bytes", instr.place); } catch (const UserError& e) {
    throw UserError(text() + ": " + e.what(), instr.place);
  }
}

}  // namespace

// Memory for the values that live between areas. Error naming the largest if there is none.
std::shared_ptr<Storage> Launch::memory_between_areas(const SegmentView& seen) const {
  const auto make = [&] { return allocate_unlogged(static_cast<size_t>(seen.workspace_bytes)); };
  const auto largest = std::max_element(seen.slots.begin(), seen.slots.end(), [](const SlotInfo& a, const SlotInfo& b) { return a.bytes < b.bytes; });
  if (largest == seen.slots.end()) return make();
  const Instr& instr = code_->instrs[static_cast<size_t>(code_->instr_of(largest->value))];
  return memory_for(instr, seen.workspace_bytes, "values between areas, the largest", make);
}

// Under the lock.
void Launch::run_segment(int begin, int end, bool unfused) {
  if (profile_.elsewhere) return run_elsewhere(begin, end);
  const WhileRunning no_fork;
  SegmentRequest request;
  request.begin = begin;
  request.end = end;
  request.unfused = unfused;
  request.measured = std::any_of(hooks_.begin(), hooks_.end(), [](const Hook& h) { return h.kind != kHookStop; });
  request.profile = &profile_;
  request.keep.assign(keep_.size(), 0);
  std::copy(keep_.begin() + code_->value_of(begin), keep_.begin() + code_->value_of(end), request.keep.begin() + code_->value_of(begin));
  for (const HookSite& site : sites_)
    if (site.instr >= begin && site.instr < end) request.hooks.push_back(site);
  const SegmentPtr segment = program->segment(*code_, geometry_, request);

  place_over_inputs(view(*segment->segment));
  allocate_kept(begin, end);
  {
    std::unique_lock running(segment->running, std::try_to_lock);
    if (!running) {
      const SpanOf waits(program->times.get(), Phase::waiting);
      running.lock();
    }
    const SegmentView& seen = view(*segment->segment);
    std::shared_ptr<Storage> workspace;
    if (seen.workspace_bytes > 0) workspace = memory_between_areas(seen);
    RunIO io;
    io.code = code_.get();
    io.values = &values_;
    if (profile_.simulated) {
      if (!device_) device_ = std::make_unique<DeviceValues>(profile_, values_.size());
      device_->prepare(*segment->segment, values_);
      io.values = &device_->values();
    }
    io.workspace = workspace ? workspace->data : nullptr;
    io.stats = &stats_;
    io.checks = &checks_;
    io.times = program->times.get();
    const int64_t start = memory_log_on() ? now_ns() : 0;
    dvm::run(*segment->segment, io);
    if (device_) {
      device_->fetch(*segment->segment, values_);
      fill_views(*segment->segment, &values_);
    }
    if (start && workspace) log_workspace(seen, *workspace, start);
  }
  count_copy_avoided(segment->copies_avoided);
  segments_.push_back(segment);
  measure_in_memory(begin, end);
  next_.store(end);
  publish_results(begin, end);
}

// With hooks the input is still wanted as it was: at a stop, or where a check reports.
void Launch::place_over_inputs(const SegmentView& seen) {
  if (!hooks_.empty() || check_mask_ || measuring_ || !profile_.plain()) return;
  for (const Plan::Over& o : over_) {
    if (std::find(seen.over_inputs.begin(), seen.over_inputs.end(), std::pair{o.result, o.input}) == seen.over_inputs.end()) continue;
    const Value& input = values_[static_cast<size_t>(o.input)];
    values_[static_cast<size_t>(o.result)] = {input.data, input.dtype, input.shape, input.strides, nullptr};
    count_copy_avoided();
  }
}

void Launch::allocate_kept(int begin, int end) {
  for (int i = begin; i < end; ++i) {
    if (!keep(i) || result(i).data) continue;
    const Instr& instr = code_->instrs[static_cast<size_t>(i)];
    Value& v = result(i);
    v.dtype = instr.dtype;
    v.shape = instr.shape;
    v.strides = contiguous_strides(instr.shape);
    const auto bytes = static_cast<size_t>(instr.shape.size() * item_size(instr.dtype));
    const auto make = [&](const BufferTag* tag) {
      return memory_for(instr, static_cast<int64_t>(bytes), "its result",
                        [&] { return profile_.simulated ? device_allocate(profile_, bytes, tag) : allocate(bytes, tag); });
    };
    if (memory_log_on()) {
      BufferTag tag = tag_of(instr, "activation", *program, i);
      tag.born = first_instruction_ + i;
      v.owner = make(&tag);
    } else {
      v.owner = make(nullptr);
    }
    v.data = v.owner->data;
  }
}

// A workspace slot lives from the first instruction of its first area to the last one of its last area.
void Launch::log_workspace(const SegmentView& seen, const Storage& workspace, int64_t start_ns) {
  std::vector<int64_t> area_end(seen.areas.size() + 1, start_ns);
  for (size_t a = 0; a < seen.areas.size(); ++a) area_end[a + 1] = area_end[a] + seen.areas[a].ns;
  std::vector<std::pair<int, int64_t>> logged;  // value, log id
  for (const SlotInfo& slot : seen.slots) {
    const int i = code_->instr_of(slot.value);
    const Instr& instr = code_->instrs[static_cast<size_t>(i)];
    BufferTag tag = tag_of(instr, "workspace", *program, i);
    for (const auto& [value, id] : logged)
      if (value == slot.in_place_of) tag.in_place_of = id;
    const auto& last = seen.areas[static_cast<size_t>(slot.last_area)].instrs;
    const int64_t freed = first_instruction_ + (last.empty() ? i : last.back()) + 1;
    logged.emplace_back(slot.value, log_span(static_cast<const char*>(workspace.data) + slot.offset, slot.bytes, tag, first_instruction_ + i, freed,
                                             area_end[static_cast<size_t>(slot.first_area)], area_end[static_cast<size_t>(slot.last_area) + 1]));
  }
}

void Launch::measure_in_memory(int begin, int end) {
  for (const HookSite& site : after_) {
    if (site.instr < begin || site.instr >= end || result(site.instr).shape.size() == 0) continue;  // of what is empty a device has no value
    const Value& v = where(site.instr);                                                            // kept: contiguous
    const auto t = static_cast<size_t>(v.dtype);
    if (site.kind == kHookStats) kernels().stats[t](&stats_[static_cast<size_t>(site.slot)], v.data, v.shape.size());
    else checks_[static_cast<size_t>(site.slot)] = kernels().check[t](v.data, v.shape.size());
  }
}

namespace {

constexpr int64_t kStatsPiece = 1 << 16;  // elements
constexpr double kStatsNs = 2;            // an element

Stats stats_of(Value v) {
  const int64_t n = v.shape.size();
  std::shared_ptr<Storage> copy;
  if (n && !is_contiguous(v.shape, v.strides)) {
    copy = allocate_unlogged(static_cast<size_t>(n * item_size(v.dtype)));
    copy_contiguous(copy->data, v);
    v.data = copy->data;
  }
  const auto measure = kernels().stats[static_cast<size_t>(v.dtype)];
  std::vector<Stats> parts(static_cast<size_t>((n + kStatsPiece - 1) / kStatsPiece));
  parallel_for(
      static_cast<int64_t>(parts.size()),
      [&](int64_t part, int) {
        const char* from = static_cast<const char*>(v.data) + part * kStatsPiece * item_size(v.dtype);
        measure(&parts[static_cast<size_t>(part)], from, std::min(kStatsPiece, n - part * kStatsPiece));
      },
      static_cast<double>(n) * kStatsNs);
  Stats all;
  for (const Stats& part : parts) stats_merge(&all, part);
  return all;
}

}  // namespace

HookEvent Launch::event_of(const Hook& h) const {
  HookEvent event;
  event.kind = h.kind == kHookStats ? "stats" : "capture";
  event.hook = h.id;
  const auto same = [&](const Hook& other) { return other.id == h.id && (other.kind & (kHookStats | kHookCapture)); };
  event.beside = std::count_if(hooks_.begin(), hooks_.end(), same) + std::count_if(of_inputs_.begin(), of_inputs_.end(), same);
  event.program = program->id;
  event.instruction = h.instruction;
  event.launch = number;
  event.step = step;
  return event;
}

// Before the first instruction: whoever owns an input may write it as soon as the launch has ended, so nothing of it is left for later.
void Launch::publish_inputs() {
  const WhileRunning no_fork;
  for (const Hook& h : of_inputs_) {
    HookEvent event = event_of(h);
    Value v = values_[static_cast<size_t>(-1 - h.instruction)];
    event.shape = v.shape;
    event.dtype = v.dtype;
    try {
      if (h.kind == kHookCapture && v.shape.size() * item_size(v.dtype) > h.limit) {  // snapshot says so
      } else if (on_device(v.data)) v = host_value(v);
      if (h.kind == kHookStats) event.stats = stats_of(v);
    } catch (const std::exception& error) {
      event.kind = "capture";
      event.placeholder = error.what();
    }
    const auto held = std::move(v.owner);  // without an owner the snapshot copies at once; a copy out of a device lives no longer than this
    if (h.kind == kHookCapture && event.placeholder.empty()) snapshot(std::move(v), std::move(event), h.limit, profile_);
    else publish(std::move(event));
  }
}

void Launch::publish_results(int begin, int end) {
  for (const Hook& h : hooks_) {
    if (h.instruction < begin || h.instruction >= end || !(h.kind & (kHookStats | kHookCapture))) continue;
    const Instr& instr = code_->instrs[static_cast<size_t>(h.instruction)];
    HookEvent event = event_of(h);
    event.place = instr.place;
    event.shape = instr.shape;
    event.dtype = instr.dtype;
    if (h.kind == kHookCapture) {
      snapshot(where(h.instruction), std::move(event), h.limit, profile_);
      continue;
    }
    for (const auto* sites : {&sites_, &after_})
      for (const HookSite& site : *sites)
        if (site.instr == h.instruction && site.kind == kHookStats) event.stats = stats_[static_cast<size_t>(site.slot)];
    publish(std::move(event));
  }
}

// The first flagged instruction in program order, once.
bool Launch::report_check() {
  int instruction = -1, bits = 0;
  std::vector<int64_t> ids;
  for (const auto* sites : {&sites_, &after_})
    for (const HookSite& site : *sites) {
      if (site.kind != kHookCheck || (instruction >= 0 && site.instr >= instruction)) continue;
      const int found = checks_[static_cast<size_t>(site.slot)];
      int wanted = check_mask_;
      std::vector<int64_t> hit;
      for (const Hook& h : hooks_) {
        if (h.kind != kHookCheck || h.instruction != site.instr) continue;
        wanted |= static_cast<int>(h.limit);
        if (found & h.limit) hit.push_back(h.id);
      }
      if (!(found & wanted)) continue;
      instruction = site.instr;
      bits = found & wanted;
      ids = std::move(hit);
    }
  if (instruction < 0) return false;
  const SpanOf theirs(nullptr, Phase::bind);
  stop_(*this, instruction, bits & 1 ? "nan" : "inf", ids);
  return true;
}

void Launch::report_measured() {
  if (!measuring_) return;
  const SpanOf theirs(nullptr, Phase::bind);
  stop_(*this, count_, "measured", {});
}

std::vector<Measured> Launch::measured() {
  std::lock_guard lock(mutex_);
  std::vector<Measured> all;
  for (const auto* sites : {&sites_, &after_})
    for (const HookSite& site : *sites)
      if (site.kind == kHookStats && site.instr < next()) all.push_back({site.instr, stats_[static_cast<size_t>(site.slot)]});
  std::sort(all.begin(), all.end(), [](const Measured& a, const Measured& b) { return a.instruction < b.instruction; });
  return all;
}

Launch::Plan Launch::inputs_again() {
  std::lock_guard lock(mutex_);
  const size_t inputs = code_->inputs.size();
  Plan plan{program, code_, geometry_, std::vector<Value>(values_.begin(), values_.begin() + static_cast<ptrdiff_t>(inputs)), {}, wanted_, {}, step};
  for (size_t i = 0; i < inputs; ++i) {
    if (!plan.values[i].data || (leases_[i] && leases_[i]->over.load()))
      throw UserError("input " + std::to_string(i) + " of the launch is gone: it cannot be run again");
    plan.leases.push_back(leases_[i]);
  }
  plan.values.resize(values_.size());
  plan.leases.resize(values_.size());
  return plan;
}

Value Launch::value(int local_id, LeasePtr* lease) {
  std::lock_guard lock(mutex_);
  if (local_id < 0 || local_id >= static_cast<int>(values_.size()))
    throw UserError("no value " + std::to_string(local_id) + " in a program of " + std::to_string(values_.size()));
  if (code_->instr_of(local_id) >= next()) return {};
  const auto i = static_cast<size_t>(local_id);
  if (leases_[i] && leases_[i]->over.load()) return {};
  if (lease) *lease = leases_[i];
  return values_[i];
}

}  // namespace dvm
