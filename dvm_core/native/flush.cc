// From pending instructions to a launch: the program, its patches, where results go.
#include <algorithm>
#include <bit>

#include "device_memory.h"
#include "graph.h"
#include "optable.h"
#include "profile.h"
#include "stream.h"
#include "warm.h"

namespace dvm {
namespace {

// First and last byte an array touches, relative to its pointer.
std::pair<int64_t, int64_t> extent(const Dims& shape, const Dims& strides, int item) {
  int64_t low = 0, high = item;
  for (int i = 0; i < shape.rank; ++i) {
    if (shape[i] == 0) return {0, 0};
    const int64_t reach = strides[i] * (shape[i] - 1) * item;
    (reach < 0 ? low : high) += reach;
  }
  return {low, high};
}

// Byte ranges of memory, to find out whether an output goes where an input or another output lies.
class Ranges {
 public:
  void add(const void* base, int64_t from, int64_t until) {
    const auto at = reinterpret_cast<intptr_t>(base);
    if (from != until) ranges_.push_back({at + from, at + until});
  }
  // After the last add. Returns whether any two overlap.
  bool sort() {
    std::sort(ranges_.begin(), ranges_.end());
    bool overlap = false;
    for (const auto& r : ranges_) {
      overlap = overlap || (!reach_.empty() && reach_.back() > r.first);
      reach_.push_back(reach_.empty() ? r.second : std::max(reach_.back(), r.second));
    }
    return overlap;
  }
  bool touches(const void* base, int64_t bytes) const {
    const auto low = reinterpret_cast<intptr_t>(base);
    const auto after = std::lower_bound(ranges_.begin(), ranges_.end(), std::pair<intptr_t, intptr_t>{low + bytes, INTPTR_MIN});
    return bytes > 0 && after != ranges_.begin() && reach_[static_cast<size_t>(after - ranges_.begin() - 1)] > low;
  }

 private:
  std::vector<std::pair<intptr_t, intptr_t>> ranges_;  // begin, end; by begin
  std::vector<intptr_t> reach_;                        // the furthest end up to here
};

// By bits: -0 is not 0 (1 / x tells them apart), and NaN is NaN.
bool same_imm(const Imm& a, const Imm& b) { return std::bit_cast<uint64_t>(a.f) == std::bit_cast<uint64_t>(b.f) && a.i == b.i && a.is_int == b.is_int; }

}  // namespace

int32_t Graph::local(int32_t id) const {
  if (id < 0) return -1;
  const Node& n = nodes_[static_cast<size_t>(id)];
  return n.pending >= 0 ? static_cast<int32_t>(inputs_.size()) + n.pending : n.slot;
}

std::shared_ptr<ProgramCode> Graph::make_code() const {
  auto code = std::make_shared<ProgramCode>();
  code->name = name;
  for (const int32_t id : inputs_) {
    const Node& n = nodes_[static_cast<size_t>(id)];
    code->inputs.push_back({n.instr.dtype, n.memory.shape, n.memory.strides, n.cls});
  }
  for (const int32_t id : pending_) {
    Instr instr = nodes_[static_cast<size_t>(id)].instr;
    for (int32_t& operand : instr.operands) operand = local(operand);
    code->instrs.push_back(std::move(instr));
  }
  return code;
}

std::shared_ptr<Segment> Graph::compiled(const std::vector<int64_t>& keep) {
  if (pending_.empty()) return nullptr;
  const auto code = make_code();
  std::vector<uint8_t> kept(code->inputs.size() + code->instrs.size(), 0);
  for (const int64_t id : keep) {
    node(id);  // throws for an id that is none
    if (const int32_t at = local(static_cast<int32_t>(id)); at >= static_cast<int32_t>(code->inputs.size())) kept[static_cast<size_t>(at)] = 1;
  }
  CompileOptions options;
  options.profile = &profile_at(0);
  return compile(*code, 0, static_cast<int>(code->instrs.size()), kept, {}, options);
}

// Writes this flush's shapes and immediates into the program's code. Returns how many instructions and inputs changed.
int64_t Graph::patch(ProgramCode& code) const {
  int64_t changed = 0;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Value& now = nodes_[static_cast<size_t>(inputs_[i])].memory;
    ProgramCode::Input& old = code.inputs[i];
    if (old.shape == now.shape && old.strides == now.strides) continue;
    old.shape = now.shape;
    old.strides = now.strides;
    ++changed;
  }
  for (size_t i = 0; i < pending_.size(); ++i) {
    const Instr& now = nodes_[static_cast<size_t>(pending_[i])].instr;
    Instr& old = code.instrs[i];
    bool same = old.shape == now.shape;
    for (size_t k = 0; k < now.imms.size(); ++k) same = same && same_imm(old.imms[k], now.imms[k]);
    if (geometric(now.op)) same = same && old.attrs == now.attrs;
    if (same) continue;
    old.shape = now.shape;
    old.imms = now.imms;
    old.attrs = now.attrs;
    if (!now.name.empty()) old.name = now.name;
    ++changed;
  }
  return changed;
}

Graph::Flush Graph::flush(const std::vector<int64_t>& keep, const std::vector<std::pair<int64_t, void*>>& outputs, const ProgramHandler& made,
                          StopHandler stop) {
  const auto must_be_there = [&](int64_t id, const char* what) {
    const Node& n = node(id);
    if (gone(n)) throw UserError(std::string(what) + ": value " + gone_text(id, n), n.instr.place);
  };
  for (const int64_t id : keep) must_be_there(id, "flush(keep)");
  for (const auto& [id, to] : outputs) {
    must_be_there(id, "flush(outputs)");
    const Instr& instr = node(id).instr;
    if (!to && instr.shape.size() > 0) throw UserError("flush(outputs): value " + id_text(id) + " goes to address 0", instr.place);
    if (reinterpret_cast<uintptr_t>(to) % static_cast<uintptr_t>(item_size(instr.dtype)) && instr.shape.size() > 0)
      throw UserError("flush(outputs): the memory for value " + id_text(id) + " " + type_text(instr.dtype, instr.shape) + " is not aligned to its items",
                      instr.place);
  }

  Flush f;
  for (const auto& [id, to] : outputs)
    if (node(id).pending < 0) f.copies.push_back({static_cast<int32_t>(id), to});
  if (pending_.empty()) return f;

  bool is_new = false;
  ProgramPtr program = find_program(key_);
  Launch::Plan plan;
  if (program) {
    plan.code = program->patched(geometry_, [this](ProgramCode& code) { return patch(code); });
  } else {
    program = add_program(key_, make_code(), backward_);
    plan.code = program->patched(geometry_, [](ProgramCode&) { return int64_t{0}; });
    is_new = true;
  }

  const size_t n_inputs = inputs_.size(), n = n_inputs + pending_.size();
  plan.program = program;
  plan.values.resize(n);
  plan.leases.resize(n);
  plan.keep.assign(n, 0);
  for (size_t i = 0; i < n_inputs; ++i) {
    const Node& in = nodes_[static_cast<size_t>(inputs_[i])];
    plan.values[i] = in.memory;
    plan.leases[i] = in.lease;
  }
  const auto want = [&](int64_t id) {
    const auto at = static_cast<size_t>(local(static_cast<int32_t>(id)));
    if (plan.keep[at]) return false;
    plan.keep[at] = 1;
    f.kept.emplace_back(static_cast<int32_t>(id), static_cast<int32_t>(at));
    return true;
  };
  // Memory that an input or another output occupies is written only after the run.
  Ranges inputs, written;
  bool crossed = false;
  if (!outputs.empty()) {
    for (size_t i = 0; i < n_inputs; ++i) {
      const Value& v = plan.values[i];
      const auto [from, until] = extent(v.shape, v.strides, item_size(v.dtype));
      inputs.add(v.data, from, until);
    }
    for (const auto& [id, to] : outputs) written.add(to, 0, node(id).instr.shape.size() * item_size(node(id).instr.dtype));
    inputs.sort();
    crossed = written.sort();
  }
  // The input that is these very bytes, if no other touches them; -1: none.
  const auto input_at = [&](const void* to, const Instr& out) {
    int32_t found = -1;
    const auto low = reinterpret_cast<intptr_t>(to), high = low + static_cast<intptr_t>(out.shape.size() * item_size(out.dtype));
    for (size_t i = 0; i < n_inputs; ++i) {
      const Value& v = plan.values[i];
      const auto [from, until] = extent(v.shape, v.strides, item_size(v.dtype));
      const auto at = reinterpret_cast<intptr_t>(v.data);
      if (from == until || at + until <= low || at + from >= high) continue;
      if (found >= 0 || v.data != to || v.dtype != out.dtype || !(v.shape == out.shape) || !is_contiguous(v.shape, v.strides)) return -1;
      found = static_cast<int32_t>(i);
    }
    return found;
  };
  for (const auto& [id, to] : outputs) {
    const Node& out = node(id);
    if (out.pending < 0) continue;
    const int64_t bytes = out.instr.shape.size() * item_size(out.instr.dtype);
    const bool first = want(id);
    const auto at = static_cast<size_t>(local(static_cast<int32_t>(id)));
    if (!first || crossed || inputs.touches(to, bytes)) {
      f.copies.push_back({static_cast<int32_t>(id), to});
      const int32_t input = first && !crossed ? input_at(to, out.instr) : -1;
      if (input >= 0) plan.over.push_back({static_cast<int32_t>(at), input});
      continue;
    }
    plan.values[at] = {to, out.instr.dtype, out.instr.shape, contiguous_strides(out.instr.shape), nullptr};
    plan.leases[at] = std::make_shared<Lease>();
    if (memory_log_on()) plan.leases[at]->log_id = log_external(to, bytes, tag_of(out.instr, backward_ ? "gradient" : "activation", *program, out.pending));
  }
  for (const int64_t id : keep)
    if (node(id).pending >= 0) want(id);

  if (is_new) {
    // A handler that looks at the fused code compiles what the launch will ask for, not something else.
    program->set_last({{}, plan.keep, plan.keep});
    warm(program);
  }
  if (made) {
    const SpanOf theirs(nullptr, Phase::bind);
    plan.passed_over = made(program, is_new);
  }
  plan.geometry = geometry_;
  plan.step = step;
  f.small = small() && !current_profile().elsewhere;  // which wants the GIL while it holds the launch
  f.launch = std::make_shared<Launch>(std::move(plan), std::move(stop));
  for (const int32_t id : pending_) nodes_[static_cast<size_t>(id)].pending = -1;
  reset();
  return f;
}

void Graph::finish(Flush& f) {
  if (f.launch)
    for (const auto& [id, local_id] : f.kept) {
      Node& n = nodes_[static_cast<size_t>(id)];
      n.memory = f.launch->value(local_id, &n.lease);
    }
  for (const Flush::Copy& copy : f.copies) {
    Node& n = nodes_[static_cast<size_t>(copy.node)];
    const int64_t bytes = n.instr.shape.size() * item_size(n.instr.dtype);
    if (bytes && copy.to != n.memory.data) {
      copy_contiguous(copy.to, host_value(n.memory));
      count_copy(bytes);
    }
    n.memory = {copy.to, n.instr.dtype, n.instr.shape, contiguous_strides(n.instr.shape), nullptr};
    n.lease = std::make_shared<Lease>();
  }
}

void Graph::release(Node& n) {
  // Memory somebody keeps for us stays readable for a launch that holds the lease; a bare pointer does not.
  if (n.lease && !n.lease->keep) n.lease->over.store(true);
  n.lease.reset();
  n.memory.data = nullptr;
  n.memory.owner.reset();
  n.memory.panels = nullptr;
}

void Graph::release(const std::vector<int64_t>& ids) {
  for (const int64_t id : ids)
    if (node(id).pending >= 0) throw UserError("release: value " + id_text(id) + " is still to be computed", node(id).instr.place);
  for (const int64_t id : ids) {
    Node& n = node(id);
    // Pending instructions still read it: their launch needs the memory.
    if (n.slot_flush == flush_number_ && !pending_.empty())
      throw UserError("release: value " + id_text(id) + " is an operand of pending instructions; flush first", n.instr.place);
    release(n);
  }
}

}  // namespace dvm
