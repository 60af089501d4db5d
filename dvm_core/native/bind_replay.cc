// The replays of a function in graph mode: one for each kind of arguments, found and run without Python.
#include <algorithm>
#include <atomic>
#include <bit>
#include <utility>

#include "array.h"
#include "calls.h"
#include "device_memory.h"
#include "replays.h"
#include "steps.h"

namespace dvm {

using namespace nb::literals;

namespace {

constexpr size_t kReplays = 64;  // of one function
constexpr size_t kArguments = 32;

std::atomic<bool> held{false};  // hot reload has something to do at the next call

// What an argument must be: an array of this dtype and geometry, or this plain value.
struct Kind {
  nb::object plain;  // null: an array
  DType dtype = DType::kNone;
  Dims shape, strides;
  size_t first = 0;  // the first argument that is the same array
};

// A function the code may call, with what can be exchanged in it.
struct Code {
  nb::object function, code, defaults, named;
  bool holds() const {
    const auto* f = reinterpret_cast<PyFunctionObject*>(function.ptr());
    const auto is = [](PyObject* now, const nb::object& was) { return (now ? now : Py_None) == was.ptr(); };
    return is(f->func_code, code) && is(f->func_defaults, defaults) && is(f->func_kwdefaults, named);
  }
};

bool same_plain(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyFloat_CheckExact(a)) return std::bit_cast<uint64_t>(PyFloat_AS_DOUBLE(a)) == std::bit_cast<uint64_t>(PyFloat_AS_DOUBLE(b));
  return (PyLong_CheckExact(a) || PyUnicode_CheckExact(a)) && PyObject_RichCompareBool(a, b, Py_EQ) == 1;
}

size_t first_of(PyObject* const* arguments, size_t i) {
  size_t j = 0;
  while (arguments[j] != arguments[i]) ++j;
  return j;
}

// Without Python and with the GIL throughout. The strides of an array still to be computed are taken to fit.
bool fits(const std::vector<Kind>& kinds, PyObject* const* arguments, size_t count) {
  if (kinds.size() != count) return false;
  for (size_t i = 0; i < count; ++i) {
    const Kind& k = kinds[i];
    if (k.plain.is_valid()) {
      if (!same_plain(k.plain.ptr(), arguments[i])) return false;
      continue;
    }
    if (!is_array(arguments[i])) return false;
    const Tensor& t = *nb::inst_ptr<Tensor>(nb::handle(arguments[i]));
    if (t.dtype != k.dtype || !(t.shape == k.shape) || first_of(arguments, i) != k.first) return false;
    if (t.ready && !(t.memory.strides == k.strides)) return false;
  }
  return true;
}

bool all_ready(PyObject* const* arguments, size_t count) {
  return std::all_of(arguments, arguments + count, [](PyObject* a) { return !is_array(a) || nb::inst_ptr<Tensor>(nb::handle(a))->ready; });
}

// Replays run on the host: what was made on a device while it was switched is left to a launch.
bool any_on_device(PyObject* const* arguments, size_t count) {
  return std::any_of(arguments, arguments + count, [](PyObject* a) { return is_array(a) && on_device(nb::inst_ptr<Tensor>(nb::handle(a))->memory.data); });
}

Replay::Argument argument(const Tensor& t) { return {t.memory.data, t.memory.panels}; }

// An argument while a replay reads its memory without the GIL: other threads may give it away or let it go meanwhile.
struct Held {
  std::shared_ptr<Storage> owner;
  LeasePtr lease;
};

// Arrays that are given away: at once, so that nobody reads what is written over, but back as they were if the call does not succeed.
class Taken {
 public:
  Taken() = default;
  Taken(const Taken&) = delete;
  void take(Tensor& t) {
    arrays_.push_back({&t, t.memory, t.lease, t.array, t.recorded_by});
    t.give_away();
  }
  void keep() { arrays_.clear(); }
  ~Taken() {
    for (Was& was : arrays_) {
      was.tensor->memory = std::move(was.memory);
      was.tensor->lease = std::move(was.lease);
      was.tensor->array = std::move(was.array);
      was.tensor->recorded_by = was.recorded_by;
      was.tensor->given = false;
      was.tensor->ready = true;
    }
  }

 private:
  struct Was {
    Tensor* tensor;
    Value memory;
    LeasePtr lease;
    nb::object array;
    uint64_t recorded_by;
  };
  std::vector<Was> arrays_;
};

}  // namespace

class Replays {
 public:
  Replays(std::vector<int> donated, const std::string& name) : donated_(std::move(donated)), calls_(calls_of(name)) {
    if (std::any_of(donated_.begin(), donated_.end(), [](int number) { return number < 0; })) throw UserError("Replays: the number of an argument is negative");
  }
  nb::object run(PyObject* const* arguments, size_t count) {
    if (held.load(std::memory_order_relaxed) || active_capture() || stopping()) return nb::none();
    // The usual case: what was used last fits, and nothing lets another thread run, or switch devices, until the results are there.
    if (Entry* last = entries_.empty() ? nullptr : entries_.front().get(); last && last->replay->is_short() && !last->guards.is_valid() && donated_.empty() &&
                                                                           last->fits(arguments, count) && all_ready(arguments, count) &&
                                                                           !any_on_device(arguments, count))
      return last->replay->begin() ? replayed_short(*last, arguments, count) : nb::none();
    std::shared_ptr<Entry> entry = find(arguments, count);
    if (entry && !all_ready(arguments, count)) {
      // Other threads run while this computes: the list may be another afterwards.
      for (size_t i = 0; i < count; ++i)
        if (is_array(arguments[i])) compute(*nb::inst_ptr<Tensor>(nb::handle(arguments[i])));
      entry = find(arguments, count);
    }
    if (!entry || (entry->guards.is_valid() && !nb::cast<bool>(entry->guards()))) return nb::none();
    begin_step();
    const struct End {
      ~End() { end_step(); }
    } end;
    // Guards run Python, and other threads meanwhile: one may have given an argument away, which the call itself tells, or have queued a swap.
    if (held.load(std::memory_order_relaxed) || !all_ready(arguments, count) || any_on_device(arguments, count)) return nb::none();
    return entry->replay->begin() ? replayed(*entry, arguments, count) : nb::none();
  }

  void add(nb::handle tuple, nb::object replay, bool single, nb::object guards, nb::handle code) {
    auto entry = std::make_shared<Entry>();
    entry->held = replay;
    entry->replay = &nb::cast<Replay&>(replay);
    entry->single = single;
    if (!guards.is_none()) entry->guards = std::move(guards);
    const Items functions(code, "code");
    for (size_t i = 0; i < functions.size(); ++i) {
      const Items parts(functions[i], "code");
      if (parts.size() != 4 || !PyFunction_Check(parts[0].ptr())) throw nb::type_error("Replays.add: code takes a function and three parts of it");
      entry->code.push_back({nb::borrow(parts[0]), nb::borrow(parts[1]), nb::borrow(parts[2]), nb::borrow(parts[3])});
    }
    const auto count = static_cast<size_t>(PyTuple_GET_SIZE(tuple.ptr()));
    PyObject* const* arguments = reinterpret_cast<PyTupleObject*>(tuple.ptr())->ob_item;
    for (size_t i = 0; i < count; ++i) {
      Kind k;
      if (is_array(arguments[i])) {
        const Tensor& t = *nb::inst_ptr<Tensor>(nb::handle(arguments[i]));
        k.dtype = t.dtype;
        k.shape = t.shape;
        k.strides = t.memory.strides;
        k.first = first_of(arguments, i);
      } else {
        k.plain = nb::borrow(arguments[i]);
      }
      entry->kinds.push_back(std::move(k));
    }
    entries_.insert(entries_.begin(), std::move(entry));
    std::shared_ptr<Entry> oldest;  // goes when the list is whole: what it holds may run Python
    if (entries_.size() > kReplays) {
      oldest = std::move(entries_.back());
      entries_.pop_back();
    }
  }

  void clear() { const auto old = std::exchange(entries_, {}); }
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::vector<Kind> kinds;
    nb::object held;
    Replay* replay = nullptr;
    bool single = true;  // one array, not a tuple of them
    nb::object guards;   // a callable, null: nothing is read from outside
    std::vector<Code> code;
    bool fits(PyObject* const* arguments, size_t count) const {
      return dvm::fits(kinds, arguments, count) && std::all_of(code.begin(), code.end(), [](const Code& c) { return c.holds(); });
    }
  };

  // What fits, now first in the list.
  std::shared_ptr<Entry> find(PyObject* const* arguments, size_t count) {
    const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const auto& e) { return e->fits(arguments, count); });
    if (found == entries_.end()) return nullptr;
    std::rotate(entries_.begin(), found, found + 1);
    return entries_.front();
  }

  nb::object replayed_short(Entry& entry, PyObject* const* arguments, size_t count) {
    Replay::Argument memory_of[kArguments];
    for (size_t i = 0; i < count; ++i)
      if (is_array(arguments[i])) memory_of[i] = argument(*nb::inst_ptr<Tensor>(nb::handle(arguments[i])));
    begin_call(calls_);
    const nb::object held = entry.held;
    const Replay& replay = *entry.replay;
    const bool single = entry.single;
    if (replay.results() == 1) {
      std::shared_ptr<Storage> result;
      entry.replay->run_short(memory_of, &result);
      return gathered(replay, &result, single);
    }
    std::vector<std::shared_ptr<Storage>> results(replay.results());
    entry.replay->run_short(memory_of, results.data());
    return gathered(replay, results.data(), single);
  }

  // Making arrays may run Python: the replay is held by the caller.
  static nb::object gathered(const Replay& replay, std::shared_ptr<Storage>* results, bool single) {
    if (single) return array_of_result(replay.result(0), std::move(results[0]));
    nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(replay.results())));
    for (size_t i = 0; i < replay.results(); ++i)
      PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i), array_of_result(replay.result(i), std::move(results[i])).release().ptr());
    return tuple;
  }

  nb::object replayed(Entry& entry, PyObject* const* arguments, size_t count) {
    Replay::Argument memory_of[kArguments];
    std::shared_ptr<Storage> given[kArguments];
    std::vector<std::shared_ptr<Storage>> results(entry.replay->results());
    for (size_t i = 0; i < count; ++i)
      if (is_array(arguments[i])) memory_of[i] = argument(*nb::inst_ptr<Tensor>(nb::handle(arguments[i])));
    Taken taken;
    for (const int number : donated_) {
      if (number >= static_cast<int>(count) || !is_array(arguments[number])) continue;
      Tensor& t = *nb::inst_ptr<Tensor>(nb::handle(arguments[number]));
      if (!t.ready) continue;  // the same array under two numbers
      // Memory that only the array itself holds, which is as good as gone then.
      if (t.memory.owner && t.memory.owner.use_count() == 1 && !t.lease) given[number] = t.memory.owner;
      taken.take(t);
    }
    begin_call(calls_);
    if (entry.replay->small) {
      entry.replay->run(memory_of, given, results.data());
    } else {
      Held memory[kArguments];
      for (size_t i = 0; i < count; ++i)
        if (is_array(arguments[i]))
          memory[i] = {nb::inst_ptr<Tensor>(nb::handle(arguments[i]))->memory.owner, nb::inst_ptr<Tensor>(nb::handle(arguments[i]))->lease};
      nb::gil_scoped_release unlocked;
      entry.replay->run(memory_of, given, results.data());
    }
    taken.keep();
    return gathered(*entry.replay, results.data(), entry.single);
  }

  std::vector<std::shared_ptr<Entry>> entries_;  // used last first
  const std::vector<int> donated_;               // numbers of the arguments that are given away
  Calls& calls_;                                 // of the function
};

Replays* replays_at(nb::handle h) { return nb::isinstance<Replays>(h) ? nb::inst_ptr<Replays>(h) : nullptr; }

nb::object replay(Replays& replays, PyObject* const* arguments, size_t count) { return replays.run(arguments, count); }

namespace {

// Of what is recorded now and will be flushed next. None: a result is no part of it.
nb::object recorded(nb::handle arguments, nb::handle results) {
  const nb::object recorder = current_recorder();
  Recorder& r = *nb::inst_ptr<Recorder>(recorder);
  const auto value = [&](nb::handle a) { return is_array(a) && nb::inst_ptr<Tensor>(a)->recorded_by == r.number ? nb::inst_ptr<Tensor>(a)->value : -1; };
  const Items given(arguments, "arguments"), wanted(results, "results");
  if (given.size() > kArguments) return nb::none();
  std::vector<std::pair<int64_t, int>> inputs;
  for (size_t i = 0; i < given.size(); ++i)
    if (const int64_t v = value(given[i]); v >= 0) inputs.emplace_back(v, static_cast<int>(i));
  std::vector<int64_t> values;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const int64_t v = value(wanted[i]);
    if (v < 0 || r.graph.node(v).pending < 0) return nb::none();
    values.push_back(v);
  }
  return nb::cast(new Replay(r.graph, inputs, values), nb::rv_policy::take_ownership);
}

}  // namespace

void bind_replays(nb::module_& m) {
  nb::class_<Replay>(m, "Replay", "A flush that can be run again on other memory of the same shapes.");
  m.attr("REPLAYED_ARGUMENTS") = kArguments;
  nb::class_<Replays>(m, "Replays", "The replays of a function in graph mode, by kind of arguments.")
      .def(nb::init<std::vector<int>, const std::string&>(), "donated"_a, "name"_a)
      .def(
          "run", [](Replays& r, nb::tuple arguments) { return r.run(reinterpret_cast<PyTupleObject*>(arguments.ptr())->ob_item, arguments.size()); },
          "arguments"_a, "The function's result, None if it must be called.")
      .def("add", &Replays::add, "arguments"_a, "replay"_a, "single"_a, "guards"_a.none(), "code"_a = nb::tuple(),
           "For arguments like these. single: the result is one array, else a tuple. guards(): whether what is read from outside is as it was. "
           "code: (function, code, defaults, defaults by name) of functions that must still have these.")
      .def("clear", &Replays::clear)
      .def("__len__", &Replays::size);
  bind_replayed_function(m);
  m.def("recorded", &recorded, "arguments"_a, "results"_a, "What is recorded now as a Replay, None if a result is no part of it.");
  m.def("hold_replays", [](bool hold) { held.store(hold); }, "hold"_a, "While held, every call of a function in graph mode is made in Python.");
  m.def("step", &current_step, "Number of the current or last outermost captured call.");
  m.def(
      "begin_call", [](const std::string& name) { return begin_call(calls_of(name)); }, "name"_a,
      "Begins the next step, an outermost call of the captured function of that name. Its number.");
  m.def(
      "calls",
      [] {
        nb::dict found;
        for (const auto& [name, count] : all_calls())
          if (count) found[nb::str(name.c_str(), name.size())] = count;
        return found;
      },
      "Outermost captured calls so far, replays included, of each captured function that was called.");
  m.def(
      "call_of_step",
      [](int64_t step) -> nb::object {
        const auto [name, call] = call_of_step(step);
        return call ? nb::object(nb::make_tuple(nb::str(name.c_str(), name.size()), call)) : nb::none();
      },
      nb::sig("def call_of_step(step: int) -> tuple[str, int] | None"), "step"_a,
      "The captured function that a step was a call of, and which; None if it was none, or is long ago.");
  m.def(
      "next_step",
      [] {
        set_step(current_step() + 1);
        return current_step();
      },
      "Begins a step that is no captured function's call. Its number.");
}

}  // namespace dvm
