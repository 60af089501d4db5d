#include "array.h"

#include "device_memory.h"
#include "device_move.h"
#include "panels.h"
#include "stream.h"

namespace dvm {
namespace {

Tensor* newest = nullptr;  // of all arrays; with the GIL

// Python objects that live as long as the interpreter.
PyObject* array_class = nullptr;

nb::object new_array() {
  if (!array_class) nb::module_::import_("dvm_core.frontends.array");  // from_dlpack can be the first thing that is called: this sets it
  nb::object made = nb::inst_alloc(array_class);
  new (nb::inst_ptr<Tensor>(made)) Tensor;
  nb::inst_mark_ready(made);
  return made;
}

// An operand has its value or is pending where `r` records: what must be computed elsewhere is. May run Python and let others run.
void settle(const Recorder& r, Tensor& t) {
  if (t.recorded_by != r.number) compute(t);
  else if (!t.ready) wait_for_flush(r.graph);
}

}  // namespace

Tensor::Tensor() : before(nullptr), after(newest) {
  if (newest) newest->before = this;
  newest = this;
}

Tensor::~Tensor() {
  (before ? before->after : newest) = after;
  if (after) after->before = before;
  if (recorder.is_valid()) recorder_at(recorder).drop(*this);
}

void Tensor::give_away() {
  if (constant()) throw UserError("a constant cannot be given away to a call (donate): its memory is never written; pass x.copy()");
  memory = Value{};
  lease.reset();
  array.reset();
  recorded_by = 0;
  ready = false;
  given = true;
}

Recording::Recording(Tensor* const* operands, size_t count) : made_(new_array()), held_(current_recorder()), operands_(operands), count_(count) {
  for (;;) {
    for (size_t i = 0; i < count; ++i)
      if (operands[i]) settle(recorder(), *operands[i]);
    // Another thread may have run what this one had recorded: that graph is over.
    if (!recorder().over) break;
    held_ = current_recorder();
  }
  first_ = recorder().graph.size();
  for (size_t i = 0; i < count; ++i)
    if (operands[i] && operands[i]->recorded_by != recorder().number) recorder().add_input(*operands[i]);
}

Recording::~Recording() {
  if (recorded_) return;
  Graph& graph = recorder().graph;
  graph.take_back(first_);
  for (size_t i = 0; i < count_; ++i)
    if (operands_[i] && operands_[i]->recorded_by == recorder().number && operands_[i]->value >= graph.size()) operands_[i]->recorded_by = 0;
}

nb::object Recording::done(bool shape_given, RecordSample& sample) {
  Recorder& r = recorder();
  const int64_t id = r.graph.record(shape_given);
  recorded_ = true;
  Tensor& t = *nb::inst_ptr<Tensor>(made_);
  const Instr& instr = r.graph.node(id).instr;
  t.dtype = instr.dtype;
  t.shape = instr.shape;
  t.recorder = held_;
  r.wait(t, id);
  sample.done(*r.graph.times);
  nb::object made = std::move(made_);
  if (id > first_) tell_input();
  return made;
}

void add_arrays(DeviceMove& move) {
  // Memory of an array's own: nothing writes it while the array has it.
  for (const Tensor* t = newest; t; t = t->after)
    if (t->ready && t->memory.owner && !t->lease) move.add(t->memory.owner);
}

void follow_arrays(const DeviceMove& move) {
  for (Tensor* t = newest; t; t = t->after) {
    if (!t->ready || !t->memory.owner) continue;
    const auto now = move.moved(*t->memory.owner);
    if (!now) continue;
    const auto offset = static_cast<char*>(t->memory.data) - static_cast<char*>(t->memory.owner->data);
    t->memory.data = static_cast<char*>(now->data) + offset;
    if (t->constant()) {  // where it is now it has none yet
      if (!now->panels) now->panels = std::make_shared<Panels>();
      t->memory.panels = now->panels.get();
    }
    t->memory.owner = now;
    t->recorded_by = 0;  // graphs that know it have it where it was
  }
}

void compute(Tensor& t) {
  if (t.ready) return;
  if (t.given) throw UserError("this array was given away to a call (donate): use that call's result");
  const nb::object held = t.recorder;
  Recorder& r = recorder_at(held);
  wait_for_flush(r.graph);
  if (t.ready) return;
  if (r.graph.node(t.value).pending >= 0) r.flush();
  r.take_over();
  if (t.ready) return;
  if (const UserError* why = r.graph.failure_of(t.value)) throw UserError(*why);
  throw UserError("a value of a captured call was read after the call had ended without keeping it: return it from the function");
}

nb::object array_on(Value memory, LeasePtr lease, nb::object array) {
  nb::object made = new_array();
  Tensor& t = *nb::inst_ptr<Tensor>(made);
  t.dtype = memory.dtype;
  t.shape = memory.shape;
  t.memory = std::move(memory);
  t.lease = std::move(lease);
  t.array = std::move(array);
  t.ready = true;
  return made;
}

nb::object array_of_result(const Value& like, std::shared_ptr<Storage> owner) {
  nb::object made = new_array();
  Tensor& t = *nb::inst_ptr<Tensor>(made);
  t.dtype = t.memory.dtype = like.dtype;
  t.shape = t.memory.shape = like.shape;
  t.memory.strides = like.strides;
  t.memory.data = owner->data;
  t.memory.owner = std::move(owner);
  t.ready = true;
  return made;
}

nb::object constant_of(Tensor& t) {
  compute(t);
  const Value from = host_value(t.memory);
  const LeasePtr held = t.lease;
  Value made;
  made.dtype = from.dtype;
  made.shape = from.shape;
  made.strides = contiguous_strides(from.shape);
  const auto bytes = static_cast<size_t>(from.shape.size() * item_size(from.dtype));
  BufferTag tag;
  tag.name = "constant";
  tag.cls = "parameter";
  made.owner = allocate(bytes, &tag);
  made.data = made.owner->data;
  if (bytes) copy_contiguous(made.data, from);
  count_copy(static_cast<int64_t>(bytes));
  made.owner->panels = std::make_shared<Panels>();
  made.panels = made.owner->panels.get();
  return array_on(std::move(made), nullptr, {});
}

void set_array_class(nb::handle cls) { array_class = cls.inc_ref().ptr(); }

bool is_array(nb::handle h) { return Py_TYPE(h.ptr()) == reinterpret_cast<PyTypeObject*>(array_class); }

}  // namespace dvm
