#include "replay.h"

#include <algorithm>
#include <utility>

#include "device_memory.h"
#include "fork.h"

namespace dvm {
namespace {

// Replays with runs that no counter knows yet.
std::vector<Replay*>& untold() {
  static auto* replays = new std::vector<Replay*>;
  return *replays;
}

}  // namespace

Replay::Replay(const Graph& graph, const std::vector<std::pair<int64_t, int>>& arguments, const std::vector<int64_t>& results)
    : small(graph.small()), number_(next_number()), key_(graph.key_), geometry_(graph.geometry_), code_(graph.make_code()) {
  const size_t inputs = code_->inputs.size(), n = inputs + code_->instrs.size();
  values_.resize(n);
  keep_.assign(n, 0);
  for (size_t i = 0; i < inputs; ++i) {
    const int32_t id = graph.inputs_[i];
    const Node& in = graph.nodes_[static_cast<size_t>(id)];
    const auto given = std::find_if(arguments.begin(), arguments.end(), [&](const auto& a) { return a.first == id; });
    values_[i] = given == arguments.end() ? host_value(in.memory) : in.memory;
    if (given == arguments.end()) {
      leases_.push_back(in.lease);
    } else {
      arguments_.emplace_back(static_cast<int32_t>(i), given->second);
      values_[i].owner.reset();
      values_[i].panels = nullptr;
    }
  }
  for (const int64_t id : results) {
    const int32_t at = graph.local(static_cast<int32_t>(id));
    results_.push_back(at);
    keep_[static_cast<size_t>(at)] = 1;
    const Instr& instr = code_->instrs[static_cast<size_t>(code_->instr_of(at))];
    values_[static_cast<size_t>(at)] = {nullptr, instr.dtype, instr.shape, contiguous_strides(instr.shape), nullptr};
  }
}

Replay::~Replay() { tell_own(); }

void Replay::tell_own() {
  if (!untold_) return;
  std::erase(untold(), this);
  program_->used_again(*segment_, untold_);
  count(std::exchange(untold_, 0));
}

void Replay::tell() {
  while (!untold().empty()) untold().back()->tell_own();
}

bool Replay::begin() {
  if (busy_.load(std::memory_order_acquire) || check_mask() || measure_every() || memory_log_on() || !current_profile().plain()) return false;
  if (program_ && program_->forgotten()) {
    tell_own();
    program_.reset();
    segment_.reset();
    short_ = false;
  }
  if (!program_) program_ = find_program(key_);
  if (!program_ || program_->hooked()) return false;
  busy_.store(true, std::memory_order_relaxed);
  return true;
}

void Replay::compile() {
  SegmentRequest request;
  request.end = static_cast<int>(code_->instrs.size());
  request.keep = keep_;
  segment_ = program_->segment(*code_, geometry_, request);
  short_ = small && dvm::is_short(*segment_->segment);
}

// What a launch does for whoever looks at the program's last one, and for the clocks of the process.
void Replay::note_launch() {
  count_launch();
  advance_instructions(static_cast<int64_t>(code_->instrs.size()));
  program_->set_replayed(number_, code_, geometry_, segment_, keep_);
}

// And for the counters.
void Replay::count(int64_t launches) {
  program_->launches.fetch_add(launches, std::memory_order_relaxed);
  program_->times->launches.fetch_add(launches, std::memory_order_relaxed);
  program_->times->instructions.fetch_add(launches * static_cast<int64_t>(code_->instrs.size()), std::memory_order_relaxed);
  count_copy_avoided(launches * segment_->copies_avoided);
}

// Given memory of the same bytes, whole, or fresh memory. The argument in the result's place comes first: p, m = step(p, m).
std::shared_ptr<Storage> Replay::memory_for(size_t place, const Argument* arguments, std::shared_ptr<Storage>* given) const {
  const int32_t result = results_[place];
  const Value& v = values_[static_cast<size_t>(result)];
  const auto bytes = static_cast<size_t>(v.shape.size() * item_size(v.dtype));
  const auto& over = view(*segment_->segment).over_inputs;
  for (const bool in_place : {true, false}) {
    if (!given) break;
    for (const auto& [input, number] : arguments_) {
      if (in_place != (number == static_cast<int>(place)) || !given[number]) continue;
      if (given[number]->bytes != bytes || given[number]->data != arguments[number].data) continue;
      if (std::find(over.begin(), over.end(), std::pair{result, input}) == over.end()) continue;
      count_copy_avoided();
      return std::move(given[number]);
    }
  }
  return allocate_unlogged(bytes);
}

// Who measures writes to the segment, one at a time.
void Replay::run_segment(bool measured, int stands_for) {
  std::unique_lock running(segment_->running, std::defer_lock);
  if (measured) running.lock();
  const SegmentView& seen = view(*segment_->segment);
  std::shared_ptr<Storage> workspace;
  if (seen.workspace_bytes > 0) workspace = allocate_unlogged(static_cast<size_t>(seen.workspace_bytes));
  RunIO io{};
  io.code = code_.get();
  io.values = &values_;
  io.workspace = workspace ? workspace->data : nullptr;
  io.times = program_->times.get();
  io.stands_for = stands_for;
  if (measured) dvm::run(*segment_->segment, io);
  else run_unmeasured(*segment_->segment, io);
}

// What a run writes among the values is its own until it lets go, whatever happens.
struct Replay::End {
  Replay& r;
  ~End() {
    for (size_t v = r.code_->inputs.size(); v < r.values_.size(); ++v) {
      r.values_[v].data = nullptr;
      r.values_[v].owner.reset();
    }
    r.busy_.store(false, std::memory_order_release);
  }
};

void Replay::run(const Places& at, int stands_for) {
  const End end{*this};
  const SpanOf bind(program_->times.get(), Phase::bind, stands_for);
  const WhileRunning no_fork;
  if (segment_) program_->used_again(*segment_, 1);
  else compile();
  place(at);
  run_segment(true, stands_for);
  note_launch();
  count(1);
}

void Replay::run_short(const Places& at) {
  if (!segment_) return run(at, 1);  // evicted since
  if (const int stands_for = sampling_.next()) {
    tell_own();
    return run(at, stands_for);
  }
  const End end{*this};
  place(at);
  run_segment(false, 1);
  note_launch();
  if (++untold_ == 1) untold().push_back(this);
}

void Replay::place(const Places& at) {
  for (const auto& [input, number] : arguments_) {
    values_[static_cast<size_t>(input)].data = at.arguments[number].data;
    values_[static_cast<size_t>(input)].panels = at.arguments[number].panels;
  }
  for (size_t i = 0; i < results_.size(); ++i) {
    Value& result = values_[static_cast<size_t>(results_[i])];
    if (at.into) {
      result.data = at.into[i];
      continue;
    }
    at.results[i] = memory_for(i, at.arguments, at.given);
    result.data = at.results[i]->data;
  }
}

}  // namespace dvm
