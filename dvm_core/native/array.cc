#include "array.h"

#include <algorithm>

#include "place.h"

namespace dvm {
namespace {

// `active` is held; borrowed: `recorder` from the capture it belongs to, `own` from the thread's dictionary.
struct Here {
  PyObject* active = nullptr;
  PyObject* recorder = nullptr;
  PyObject* own = nullptr;
};
thread_local Here here;

// Python objects that live as long as the interpreter.
PyObject* array_class = nullptr;
PyObject* flush_of_capture = nullptr;

constexpr const char* kOwnKey = "dvm_core.array_recorder";

Recorder& recorder_at(nb::handle h) { return *nb::inst_ptr<Recorder>(h); }

uint64_t next_number() {
  static uint64_t last = 0;  // under the GIL
  return ++last;
}

// The thread's own graph runs: its ids only grow, so the next array gets another.
void forget_own(const Recorder& r) {
  if (!here.own || &recorder_at(here.own) != &r) return;
  here.own = nullptr;
  if (PyObject* threads = PyThreadState_GetDict()) {
    if (PyDict_DelItemString(threads, kOwnKey) != 0) PyErr_Clear();
  }
}

void flush(Recorder& r) {
  if (!r.owner.is_none()) {
    const nb::object capture = nb::borrow(PyWeakref_GetObject(r.owner.ptr()));
    if (!capture.is_none()) {
      const nb::object done = nb::steal(PyObject_CallOneArg(flush_of_capture, capture.ptr()));
      if (!done.is_valid()) throw nb::python_error();
      return;
    }
  }
  if (r.owner.is_none()) forget_own(r);  // first: what is recorded after a failure has nothing to do with it
  r.graph.step = current_step();
  run_pending(r.graph, r.wanted(), {});
}

nb::object new_array() {
  nb::object made = nb::inst_alloc(array_class);
  new (nb::inst_ptr<Tensor>(made)) Tensor;
  nb::inst_mark_ready(made);
  return made;
}

}  // namespace

Tensor::~Tensor() {
  if (recorder.is_valid()) {
    std::vector<Tensor*>& waiting = recorder_at(recorder).waiting;
    if (value >= 0 && value < static_cast<int64_t>(waiting.size()) && waiting[static_cast<size_t>(value)] == this)
      waiting[static_cast<size_t>(value)] = nullptr;
  }
}

void Tensor::give_away() {
  memory = Value{};
  lease.reset();
  array.reset();
  recorded_by = 0;
  ready = false;
  given = true;
}

Recorder::Recorder(nb::object graph_, nb::handle capture)
    : number(next_number()), graph_object(std::move(graph_)), graph(nb::cast<Graph&>(graph_object)), owner(nb::none()) {
  if (capture.is_none()) return;
  owner = nb::steal(PyWeakref_NewRef(capture.ptr(), nullptr));
  if (!owner.is_valid()) throw nb::python_error();
}

Recorder::~Recorder() {
  if (here.own && &recorder_at(here.own) == this) here.own = nullptr;  // the thread's dictionary went before the thread
}

std::vector<int64_t> Recorder::wanted() {
  std::vector<int64_t> ids;
  for (size_t v = 0; v < waiting.size(); ++v)
    if (waiting[v] && graph.node(static_cast<int64_t>(v)).pending >= 0) ids.push_back(static_cast<int64_t>(v));
  return ids;
}

void Recorder::take_over() {
  for (size_t v = 0; v < waiting.size(); ++v) {
    if (!waiting[v]) continue;
    const Node& n = graph.node(static_cast<int64_t>(v));
    if (!n.memory.data) continue;
    Tensor& t = *waiting[v];
    t.memory = n.memory;
    t.lease = n.lease;
    t.ready = true;
    waiting[v] = nullptr;
    t.recorder.reset();  // may be the last reference but the caller's
  }
}

void set_active_capture(PyObject* capture) {
  Py_XINCREF(capture);
  Py_XSETREF(here.active, capture);
  here.recorder = nullptr;
}

PyObject* active_capture() { return here.active; }

nb::object current_recorder() {
  if (here.active) {
    if (!here.recorder) {
      nb::object found = nb::getattr(here.active, "_array_recorder", nb::none());
      if (found.is_none()) {
        found = nb::cast(new Recorder(nb::getattr(here.active, "graph"), here.active), nb::rv_policy::take_ownership);
        nb::setattr(here.active, "_array_recorder", found);
      }
      here.recorder = found.ptr();
    }
    return nb::borrow(here.recorder);
  }
  if (!here.own) {
    const nb::object made = nb::cast(new Recorder(nb::cast(new Graph("arrays"), nb::rv_policy::take_ownership), nb::none()), nb::rv_policy::take_ownership);
    PyObject* threads = PyThreadState_GetDict();
    if (!threads || PyDict_SetItemString(threads, kOwnKey, made.ptr()) != 0) throw nb::python_error();
    here.own = made.ptr();
  }
  return nb::borrow(here.own);
}

int64_t value_of(Recorder& r, Tensor& t) {
  if (t.recorded_by == r.number) {
    if (!t.ready) wait_for_flush(r.graph);
    return t.value;
  }
  compute(t);
  std::shared_ptr<void> keep = t.memory.owner;
  if (t.lease) keep = t.memory.owner ? std::make_shared<std::pair<std::shared_ptr<void>, LeasePtr>>(t.memory.owner, t.lease) : std::shared_ptr<void>(t.lease);
  t.value = r.graph.input(t.memory.data, t.dtype, t.shape, &t.memory.strides, std::move(keep), "");
  t.recorded_by = r.number;
  return t.value;
}

void compute(Tensor& t) {
  if (t.ready) return;
  if (t.given) throw UserError("this array was given away to a call (donate): use that call's result");
  const nb::object held = t.recorder;
  Recorder& r = recorder_at(held);
  wait_for_flush(r.graph);
  if (t.ready) return;
  if (r.graph.node(t.value).pending >= 0) flush(r);
  r.take_over();
  if (t.ready) return;
  if (const UserError* why = r.graph.failure_of(t.value)) throw UserError(*why);
  throw UserError("a value of a captured call was read after the call had ended without keeping it: return it from the function");
}

nb::object record_array(nb::handle recorder, bool shape_given, const RecordSample& sample) {
  Recorder& r = recorder_at(recorder);
  const int64_t id = r.graph.record(shape_given);
  nb::object made = new_array();
  Tensor& t = *nb::inst_ptr<Tensor>(made);
  const Instr& instr = r.graph.node(id).instr;
  t.dtype = instr.dtype;
  t.shape = instr.shape;
  t.recorder = nb::borrow(recorder);
  t.recorded_by = r.number;
  t.value = id;
  r.waiting.resize(static_cast<size_t>(id) + 1, nullptr);
  r.waiting.back() = &t;
  sample.done(*r.graph.times);
  return made;
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

void set_array_class(nb::handle cls, nb::handle flush_capture) {
  array_class = cls.inc_ref().ptr();
  flush_of_capture = flush_capture.inc_ref().ptr();
}

bool is_array(nb::handle h) { return Py_TYPE(h.ptr()) == reinterpret_cast<PyTypeObject*>(array_class); }

}  // namespace dvm
