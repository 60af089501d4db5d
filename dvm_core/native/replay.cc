#include "replay.h"

#include <algorithm>

#include "device_memory.h"
#include "fork.h"

namespace dvm {
namespace {

uint64_t next_number() {
  static uint64_t last = 0;  // under the GIL
  return ++last;
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

bool Replay::begin() {
  if (busy_.load(std::memory_order_acquire) || check_mask() || measure_every() || memory_log_on() || !current_profile().plain()) return false;
  if (program_ && program_->forgotten()) {
    program_.reset();
    segment_.reset();
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
}

// What a launch does for the counters and for whoever looks at the program's last launch.
void Replay::note_launch() {
  const auto count = static_cast<int64_t>(code_->instrs.size());
  program_->launches.fetch_add(1, std::memory_order_relaxed);
  program_->times->launches.fetch_add(1, std::memory_order_relaxed);
  program_->times->instructions.fetch_add(count, std::memory_order_relaxed);
  count_launch();
  advance_instructions(count);
  count_copy_avoided(segment_->copies_avoided);
  program_->set_replayed(number_, code_, geometry_, segment_, keep_);
}

// Given memory of the same bytes, whole, or fresh memory. The argument in the result's place comes first: p, m = step(p, m).
std::shared_ptr<Storage> Replay::memory_for(size_t place, void* const* addresses, std::shared_ptr<Storage>* given) const {
  const int32_t result = results_[place];
  const Value& v = values_[static_cast<size_t>(result)];
  const auto bytes = static_cast<size_t>(v.shape.size() * item_size(v.dtype));
  const auto& over = view(*segment_->segment).over_inputs;
  for (const bool in_place : {true, false})
    for (const auto& [input, number] : arguments_) {
      if (in_place != (number == static_cast<int>(place)) || !given[number]) continue;
      if (given[number]->bytes != bytes || given[number]->data != addresses[number]) continue;
      if (std::find(over.begin(), over.end(), std::pair{result, input}) == over.end()) continue;
      count_copy_avoided();
      return std::move(given[number]);
    }
  return allocate_unlogged(bytes);
}

void Replay::run(void* const* addresses, std::shared_ptr<Storage>* given, Value* results) {
  struct End {  // whatever happens
    Replay& r;
    ~End() {
      for (size_t v = r.code_->inputs.size(); v < r.values_.size(); ++v) {
        r.values_[v].data = nullptr;
        r.values_[v].owner.reset();
      }
      r.busy_.store(false, std::memory_order_release);
    }
  } end{*this};
  const SpanOf bind(program_->times.get(), Phase::bind);
  const WhileRunning no_fork;
  if (segment_) program_->used_again(*segment_);
  else compile();
  for (const auto& [input, number] : arguments_) values_[static_cast<size_t>(input)].data = addresses[number];
  for (size_t i = 0; i < results_.size(); ++i) {
    Value& v = values_[static_cast<size_t>(results_[i])];
    results[i] = v;
    results[i].owner = memory_for(i, addresses, given);
    results[i].data = v.data = results[i].owner->data;
  }
  {
    std::lock_guard running(segment_->running);
    const SegmentView& seen = view(*segment_->segment);
    std::shared_ptr<Storage> workspace;
    if (seen.workspace_bytes > 0) workspace = allocate_unlogged(static_cast<size_t>(seen.workspace_bytes));
    RunIO io{};
    io.code = code_.get();
    io.values = &values_;
    io.workspace = workspace ? workspace->data : nullptr;
    io.times = program_->times.get();
    dvm::run(*segment_->segment, io);
  }
  note_launch();
}

}  // namespace dvm
