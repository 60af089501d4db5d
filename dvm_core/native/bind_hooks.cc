#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <map>
#include <tuple>

#include "bind_common.h"
#include "place.h"
#include "replay.h"
#include "snapshot.h"
#include "stream.h"

namespace dvm {

using namespace nb::literals;

namespace {

// Python objects, so not static members with destructors: forgotten by an atexit function, with the interpreter still alive.
PyObject* on_stop = nullptr;
PyObject* on_program = nullptr;
PyObject* on_input = nullptr;

void set_handler(PyObject*& slot, nb::handle handler, const char* what) {
  if (!handler.is_none() && !PyCallable_Check(handler.ptr())) {
    PyErr_Format(PyExc_TypeError, "%s: a callable or None is wanted, not %s", what, Py_TYPE(handler.ptr())->tp_name);
    throw nb::python_error();
  }
  PyObject* old = slot;
  slot = handler.is_none() ? nullptr : handler.inc_ref().ptr();
  Py_XDECREF(old);
}

// The one of all hooks with this id. Under the GIL.
std::shared_ptr<Joint> joint_of(int64_t id) {
  static auto* by_id = new std::map<int64_t, std::weak_ptr<Joint>>;
  std::erase_if(*by_id, [](const auto& one) { return one.second.expired(); });
  std::shared_ptr<Joint> made = (*by_id)[id].lock();
  if (!made) (*by_id)[id] = made = std::make_shared<Joint>();
  return made;
}

Hook checked_hook(const ProgramPtr& p, int64_t instruction, int kind, int64_t hook, int64_t every, int64_t limit, bool joint) {
  const int64_t program = p->id;
  const auto count = static_cast<int64_t>(p->code()->instrs.size());
  const auto inputs = static_cast<int64_t>(p->code()->inputs.size());
  if (instruction < -inputs || instruction >= count)
    throw UserError("set_hook: no instruction " + std::to_string(instruction) + " in program " + std::to_string(program) + " of " + std::to_string(count) +
                    " and " + std::to_string(inputs) + " inputs");
  if (instruction < 0 && kind != kHookStats && kind != kHookCapture)
    throw UserError("set_hook: of an input statistics or bytes are taken, not kind " + std::to_string(kind));
  if (kind != kHookStop && kind != kHookStats && kind != kHookCapture && kind != kHookCheck) throw UserError("set_hook: no hook kind " + std::to_string(kind));
  if (every < 1) throw UserError("set_hook: every must be 1 or more, got " + std::to_string(every));
  if (limit < 0) throw UserError("set_hook: limit must not be negative, got " + std::to_string(limit));
  Hook h;
  h.instruction = static_cast<int>(instruction);
  h.kind = kind;
  h.id = hook;
  h.every = every;
  h.limit = kind == kHookCheck && !(limit & 3) ? 3 : limit;
  h.first = p->launches.load();
  if (joint) h.joint = joint_of(hook);
  return h;
}

void set_hook(int64_t program, int64_t instruction, int kind, int64_t hook, int64_t every, int64_t limit) {
  const ProgramPtr p = program_by_id(program);
  Replay::tell();
  p->change_hooks({}, {checked_hook(p, instruction, kind, hook, every, limit, false)});
}

using ToClear = std::tuple<int64_t, int, int, int64_t>;
using ToSet = std::tuple<int64_t, int64_t, int, int64_t, int64_t, int64_t, bool>;

void change_hooks(const std::vector<ToClear>& out, const std::vector<ToSet>& in) {
  struct Change {
    ProgramPtr program;
    std::vector<Hook> out, in;
  };
  std::map<int64_t, Change> changes;
  const auto of = [&](int64_t id) -> Change* {
    const auto [at, added] = changes.try_emplace(id);
    try {
      if (added) at->second.program = program_by_id(id);
    } catch (const UserError&) {}  // forgotten
    return at->second.program ? &at->second : nullptr;
  };
  Replay::tell();
  for (const auto& [program, instruction, kind, hook] : out)
    if (Change* change = of(program)) {
      Hook h;
      h.instruction = instruction;
      h.kind = kind;
      h.id = hook;
      change->out.push_back(h);
    }
  for (const auto& [program, instruction, kind, hook, every, limit, joint] : in)
    if (Change* change = of(program)) change->in.push_back(checked_hook(change->program, instruction, kind, hook, every, limit, joint));
  for (auto& [id, change] : changes)
    if (change.program) change.program->change_hooks(change.out, change.in);
}

void clear_hook(int64_t program, int instruction, int kind, int64_t hook) {
  Hook h;
  h.instruction = instruction;
  h.kind = kind;
  h.id = hook;
  program_by_id(program)->change_hooks({h}, {});
}

// The bytes of a capture; many of them as a view of the copy that was made, not as another one.
nb::object data_of(const HookEvent& e) {
  constexpr size_t kViewedFrom = size_t{64} << 10;
  const size_t n = e.bytes();
  if (n < kViewedFrom) return nb::bytes(n ? static_cast<const char*>(e.data->data) : "", n);
  const nb::capsule owner(new std::shared_ptr<Storage>(e.data), [](void* o) noexcept { delete static_cast<std::shared_ptr<Storage>*>(o); });
  const nb::object array = nb::cast(nb::ndarray<nb::numpy, const uint8_t, nb::shape<-1>>(e.data->data, {n}, owner));
  return nb::steal(PyMemoryView_FromObject(array.ptr()));
}

nb::dict event_dict(HookEvent& e) {
  using E = HookEvent;
  nb::dict d = told(e, "kind", &E::kind, "hook", &E::hook, "program", &E::program, "instruction", &E::instruction, "launch", &E::launch, "step", &E::step,
                    "beside", &E::beside, "time_ns", &E::time_ns);
  d["shape"] = from_dims(e.shape);
  d["dtype"] = static_cast<int>(e.dtype);
  if (e.kind == "stats") {
    d["stats"] = stats_dict(e.stats);
  } else {
    d["data"] = data_of(e);
    d["placeholder"] = e.placeholder;
  }
  return d;
}

nb::list poll_events(int64_t limit) {
  int64_t dropped = 0;
  auto events = take_events(limit, &dropped);
  nb::list out;
  if (dropped) {
    nb::dict d;
    d["kind"] = "dropped";
    d["count"] = dropped;
    out.append(d);
  }
  for (HookEvent& e : events) out.append(event_dict(e));
  return out;
}

// By DLPack code and item size; uint16 is how NumPy carries bfloat16.
DType dtype_of(const nb::ndarray<nb::ro>& array) {
  using Code = nb::dlpack::dtype_code;
  const auto t = array.dtype();
  const auto is = [&](Code code, int bits) { return t.code == static_cast<uint8_t>(code) && t.bits == bits && t.lanes == 1; };
  if (is(Code::Float, 32)) return DType::kF32;
  if (is(Code::Float, 16)) return DType::kF16;
  if (is(Code::Float, 64)) return DType::kF64;
  if (is(Code::UInt, 16)) return DType::kBF16;
  if (is(Code::Bool, 8)) return DType::kBool;
  if (is(Code::Int, 8)) return DType::kI8;
  if (is(Code::UInt, 8)) return DType::kU8;
  if (is(Code::Int, 32)) return DType::kI32;
  if (is(Code::Int, 64)) return DType::kI64;
  throw UserError("stats_of: no dtype of the core has this array's type");
}

nb::dict stats_of(const nb::ndarray<nb::ro>& array) {
  const DType t = dtype_of(array);
  if (array.ndim() > static_cast<size_t>(kMaxRank)) throw UserError("stats_of: rank " + std::to_string(array.ndim()) + " is above " + std::to_string(kMaxRank));
  Value v;
  v.dtype = t;
  v.data = const_cast<void*>(array.data());
  v.shape.rank = v.strides.rank = static_cast<int>(array.ndim());
  for (size_t i = 0; i < array.ndim(); ++i) {
    v.shape[static_cast<int>(i)] = static_cast<int64_t>(array.shape(i));
    v.strides[static_cast<int>(i)] = array.stride(i);
  }
  Stats stats;
  {
    nb::gil_scoped_release unlocked;
    const int64_t n = v.shape.size();
    std::shared_ptr<Storage> copy;
    if (n && !is_contiguous(v.shape, v.strides)) {
      copy = allocate_unlogged(static_cast<size_t>(n * item_size(t)));
      copy_contiguous(copy->data, v);
      v.data = copy->data;
    }
    if (n) kernels().stats[static_cast<size_t>(t)](&stats, v.data, n);
  }
  return stats_dict(stats);
}

}  // namespace

nb::dict capture_stats() {
  using S = SnapshotStats;
  return told(snapshot_stats(), "taken", &S::taken, "published", &S::published, "placeholders", &S::placeholders, "late", &S::late, "dropped", &S::dropped,
              "held_bytes", &S::held_bytes);
}

void forget_handlers() {
  Py_CLEAR(on_stop);
  Py_CLEAR(on_program);
  Py_CLEAR(on_input);
}

// The handler in force when the launch began; called with the GIL, which the launching thread has let go.
bool stopping() { return on_stop != nullptr; }

StopHandler stop_handler() {
  if (!on_stop) return nullptr;
  return [handler = hold(on_stop)](Launch& launch, int instruction, const char* reason, const std::vector<int64_t>& hooks) {
    nb::gil_scoped_acquire locked;
    nb::borrow(static_cast<PyObject*>(handler.get()))(nb::cast(launch.shared_from_this()), instruction, reason, from_ints(hooks));
  };
}

Graph::ProgramHandler program_handler() {
  if (!on_program && !on_input) return nullptr;
  const auto held = [](PyObject* handler) { return handler ? hold(handler) : nullptr; };
  return [made = held(on_program), launched = held(on_input)](const ProgramPtr& program, bool is_new) {
    if (is_new && made) nb::borrow(static_cast<PyObject*>(made.get()))(nb::cast(program));
    PassedOver passed_over;
    if (!launched) return passed_over;
    const nb::object told = nb::borrow(static_cast<PyObject*>(launched.get()))(nb::cast(program));
    if (!told.is_none()) passed_over = nb::cast<PassedOver>(told);
    return passed_over;
  };
}

void tell_input() {
  if (on_input) nb::borrow(on_input)(nb::none());
}

void bind_hooks(nb::module_& m) {
  m.attr("HOOK_STOP") = kHookStop;
  m.attr("HOOK_STATS") = kHookStats;
  m.attr("HOOK_CAPTURE") = kHookCapture;
  m.attr("HOOK_CHECK") = kHookCheck;
  m.def("set_hook", &set_hook, "program"_a, "instruction"_a, "kind"_a, "hook"_a, "every"_a = 1, "limit"_a = 1 << 20,
        "Sets a hook, in force from the program's next launch and then on every n-th. limit: bytes of a capture, bits of a check (neither bit: both).");
  m.def("clear_hook", &clear_hook, "program"_a, "instruction"_a, "kind"_a, "hook"_a, "Removes a hook; one that is not set is no error.");
  m.def("change_hooks", &change_hooks, "clear"_a, "set"_a,
        "Takes out hooks, (program, instruction, kind, hook), and sets others, (program, instruction, kind, hook, every, limit, joint), of each program "
        "at a stroke; programs that are forgotten are passed over. joint: every counts the calls in which any hook of this id is met.");
  m.def(
      "clear_hooks",
      [] {
        for (const ProgramPtr& p : all_programs()) p->clear_hooks();
      },
      "Removes all hooks of all programs.");
  m.def("set_check", &set_check_mask, "mask"_a, "HOOK_CHECK on every float instruction of every program (bit 0 NaN, bit 1 Inf; 0 = off).");
  m.def("set_measure", &set_measure, "every"_a,
        "Statistics of every float result in every n-th launch of every program; the stop handler is called with the complete launch and the reason "
        "\"measured\". 0: off.");
  m.def(
      "set_program_handler", [](nb::handle h) { set_handler(on_program, h, "set_program_handler"); }, "handler"_a.none(),
      "Called with each new program, on the capturing thread, before its first launch.");
  m.def(
      "set_input_handler", [](nb::handle h) { set_handler(on_input, h, "set_input_handler"); }, "handler"_a.none(),
      "handler(None) is called when an instruction over arrays has been recorded that brought inputs; handler(program) before each launch, while its "
      "instructions still are the graph's pending ones. It gives None, or pairs (hook, instruction) that this launch passes over.");
  m.def(
      "set_stop_handler", [](nb::handle h) { set_handler(on_stop, h, "set_stop_handler"); }, "handler"_a.none(),
      "handler(launch, instruction, reason, hook ids) is called at stops, on the launching thread. What it raises leaves flush().");
  m.def("poll_events", &poll_events, "limit"_a = 1000, "Takes finished hook results, oldest first.");
  m.def("event_fd", &events_fd, "A descriptor that is readable while poll_events has something.");
  m.def("synchronize_copies", &synchronize_snapshots, nb::call_guard<nb::gil_scoped_release>(), "Waits until all captures so far are in the queue.");
  m.def("set_capture_timeout", &set_snapshot_timeout, "milliseconds"_a, "drop_after"_a = 0,
        "How long a capture may wait for its copy before it becomes a placeholder: 1..60000, 100 at first; and how long a copy that is late is held "
        "before it is dropped (0: a hundred times that). For captures taken from now on.");
  m.def("capture_stats", &capture_stats,
        "Captures: taken, published, placeholders, of these late (the copy came after all) and dropped; held_bytes wait or are held for late copies.");
  m.def("delay_copies", &delay_snapshots, "milliseconds"_a, "For tests: keeps the copy stream busy that long.");
  m.def("stats_of", &stats_of, "array"_a, "The hooks' statistics of any array (uint16 is taken as bfloat16).");
}

}  // namespace dvm
