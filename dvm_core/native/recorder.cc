// Where arrays record, and how a thread's own graph stays small: what no array waits for is let go of.
#include <algorithm>

#include "array.h"
#include "optable.h"
#include "steps.h"

namespace dvm {
namespace {

// `active` is held; borrowed: `recorder` from the capture it belongs to, `own` from the thread's dictionary.
struct Here {
  PyObject* active = nullptr;
  PyObject* recorder = nullptr;
  PyObject* own = nullptr;
  ~Here() {
    if (active) abandon_step();  // the thread ends in a captured call
  }
};
thread_local Here here;

PyObject* flush_of_capture = nullptr;  // lives as long as the interpreter

constexpr const char* kOwnKey = "dvm_core.array_recorder";

// A thread's own graph is looked through when it has this many values, or inputs of this many bytes, and again when it has twice what lived.
constexpr int64_t kLookValues = 512, kLookBytes = int64_t{64} << 20;
// More than this is not put off any longer: who only ever adds to a sum records without end.
constexpr int64_t kMostPending = 10'000;

// A new recorder of the thread's own, in place of the one it had.
Recorder& begin_own() {
  const nb::object made = nb::cast(new Recorder(nb::cast(new Graph("arrays"), nb::rv_policy::take_ownership), nb::none()), nb::rv_policy::take_ownership);
  const nb::object before = here.own ? nb::borrow(here.own) : nb::object();  // goes last: it may run Python
  here.own = nullptr;
  PyObject* threads = PyThreadState_GetDict();
  if (!threads || PyDict_SetItemString(threads, kOwnKey, made.ptr()) != 0) throw nb::python_error();
  here.own = made.ptr();
  return recorder_at(made);
}

}  // namespace

Recorder& recorder_at(nb::handle h) { return *nb::inst_ptr<Recorder>(h); }

Recorder::Recorder(nb::object graph_, nb::handle capture)
    : number(next_number()),
      graph_object(std::move(graph_)),
      graph(nb::cast<Graph&>(graph_object)),
      owner(nb::none()),
      look_values_(kLookValues),
      look_bytes_(kLookBytes) {
  if (capture.is_none()) return;
  owner = nb::steal(PyWeakref_NewRef(capture.ptr(), nullptr));
  if (!owner.is_valid()) throw nb::python_error();
}

Recorder::~Recorder() {
  if (here.own && &recorder_at(here.own) == this) here.own = nullptr;  // the thread's dictionary went before the thread
}

void Recorder::wait(Tensor& t, int64_t id) {
  t.recorded_by = number;
  t.value = id;
  waiting.resize(static_cast<size_t>(id) + 1, nullptr);
  waiting.back() = &t;
  ++waiters_;
}

void Recorder::drop(const Tensor& t) {
  if (t.value < 0 || t.value >= static_cast<int64_t>(waiting.size()) || waiting[static_cast<size_t>(t.value)] != &t) return;
  waiting[static_cast<size_t>(t.value)] = nullptr;
  if (--waiters_ > 0 || !owner.is_none() || over) return;
  begin_again();
}

void Recorder::begin_again() {
  number = next_number();  // first: letting go of memory may run Python, which records
  waiting.clear();
  waiters_ = input_bytes_ = 0;
  graph.begin_again();
}

bool Recorder::revive() {
  if (!over || graph.pending() || !owner.is_none() || Py_REFCNT(graph_object.ptr()) != 1) return false;
  begin_again();
  look_values_ = kLookValues;
  look_bytes_ = kLookBytes;
  over = false;
  return true;
}

void Recorder::add_input(Tensor& t) {
  std::shared_ptr<void> keep = t.memory.owner;
  if (t.lease) keep = t.memory.owner ? std::make_shared<std::pair<std::shared_ptr<void>, LeasePtr>>(t.memory.owner, t.lease) : std::shared_ptr<void>(t.lease);
  t.value = graph.input(t.memory.data, t.dtype, t.shape, &t.memory.strides, std::move(keep), t.memory.panels ? "parameter" : "");
  graph.node(t.value).memory.panels = t.memory.panels;
  t.recorded_by = number;
  input_bytes_ += t.shape.size() * item_size(t.dtype);
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
    --waiters_;
    t.recorder.reset();  // may be the last reference but the caller's
  }
}

void Recorder::flush() {
  if (!owner.is_none()) {
    const nb::object capture = nb::borrow(PyWeakref_GetObject(owner.ptr()));
    if (!capture.is_none()) {
      const nb::object done = nb::steal(PyObject_CallOneArg(flush_of_capture, capture.ptr()));
      if (!done.is_valid()) throw nb::python_error();
      return;
    }
  }
  struct End {  // its inputs are not needed any more, whoever holds the recorder
    Recorder& r;
    ~End() {
      if (!r.over || r.graph.pending()) return;
      r.take_over();
      r.graph.forget();
    }
  } end{*this};
  over = over || owner.is_none();  // first: what is recorded after a failure has nothing to do with it
  graph.step = current_step();
  run_pending(graph, wanted(), {});
}

// Of a thread's own graph, which has grown: values that no array needs are left behind.
void Recorder::look() {
  std::vector<uint8_t> needed(static_cast<size_t>(graph.size()), 0);
  for (size_t v = 0; v < waiting.size(); ++v) needed[v] = waiting[v] != nullptr;
  int64_t values = 0, pending = 0, bytes = 0;
  for (size_t v = needed.size(); v-- > 0;) {
    if (!needed[v]) continue;
    const Instr& instr = graph.node(static_cast<int64_t>(v)).instr;
    for (const int32_t operand : instr.operands)
      if (operand >= 0) needed[static_cast<size_t>(operand)] = 1;
    ++values;
    if (instr.op == Op::kEnd) bytes += instr.shape.size() * item_size(instr.dtype);
    else ++pending;
  }
  if (pending > kMostPending) {
    try {
      flush();
    } catch (const UserError&) {  // told where one of the arrays is used
    }
    return;
  }
  if (2 * values > graph.size() && 2 * bytes > input_bytes_) {
    look_values_ = 2 * graph.size();
    look_bytes_ = std::max(kLookBytes, 2 * input_bytes_);
    return;
  }
  const nb::object old = nb::borrow(here.own);
  Recorder& next = begin_own();
  over = true;
  const std::vector<int64_t> moved = graph.move_to(next.graph, needed);
  next.input_bytes_ = bytes;
  next.look_values_ = std::max(kLookValues, 2 * values);
  next.look_bytes_ = std::max(kLookBytes, 2 * bytes);
  for (size_t v = 0; v < waiting.size(); ++v) {
    if (!waiting[v]) continue;
    waiting[v]->recorder = nb::borrow(here.own);
    next.wait(*waiting[v], moved[v]);
    waiting[v] = nullptr;
  }
  waiters_ = 0;
  graph.forget();
}

void set_active_capture(PyObject* capture, bool aside) {
  if (!aside && capture && !here.active) begin_step();
  if (!aside && !capture && here.active) end_step();
  Py_XINCREF(capture);
  Py_XSETREF(here.active, capture);
  here.recorder = nullptr;
}

PyObject* active_capture() { return here.active; }

void note_read() {
  if (here.active) nb::setattr(here.active, "reads", nb::bool_(true));
}

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
  if (here.own && !recorder_at(here.own).over && recorder_at(here.own).grown()) {
    const nb::object held = nb::borrow(here.own);
    recorder_at(held).look();
  }
  if (here.own && recorder_at(here.own).over && Py_REFCNT(here.own) == 1) {
    const nb::object held = nb::borrow(here.own);  // Python that runs meanwhile makes one of its own
    if (recorder_at(held).revive() && held.is(here.own)) return held;
  }
  if (!here.own || recorder_at(here.own).over) begin_own();
  return nb::borrow(here.own);
}

void set_flush_of_capture(nb::handle flush_capture) { flush_of_capture = flush_capture.inc_ref().ptr(); }

}  // namespace dvm
