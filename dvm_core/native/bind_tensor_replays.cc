// Replays on a framework's own tensors: found by the kinds of arguments, read where tensors lie, written to tensors that the framework makes.
#include <algorithm>
#include <bit>
#include <utility>

#include "bind_common.h"
#include "device_memory.h"
#include "replay.h"

namespace dvm {

using namespace nb::literals;

namespace {

bool aligned(const Value& v) { return reinterpret_cast<uintptr_t>(v.data) % static_cast<uintptr_t>(item_size(v.dtype)) == 0; }

bool negated(nb::handle tensor) {
  static PyObject* const is_neg = PyUnicode_InternFromString("is_neg");
  PyObject* self = tensor.ptr();
  const nb::object found = nb::steal(PyObject_VectorcallMethod(is_neg, &self, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
  if (!found.is_valid()) PyErr_Clear();
  return !found.is(nb::bool_(false));
}

// What a call of a graph depends on besides the elements of its tensors. False: one of the arguments is of a kind that is not known.
bool key_of(nb::list arguments, std::vector<int64_t>& key) {
  enum : int64_t { kNone, kBool, kInt, kFloat, kTensor };
  key.clear();
  const auto count = static_cast<size_t>(PyList_GET_SIZE(arguments.ptr()));
  for (size_t i = 0; i < count; ++i) {
    PyObject* const a = PyList_GET_ITEM(arguments.ptr(), static_cast<Py_ssize_t>(i));
    Value v;
    if (a == Py_None) {
      key.push_back(kNone);
    } else if (PyBool_Check(a)) {
      key.insert(key.end(), {kBool, a == Py_True});
    } else if (PyLong_CheckExact(a)) {
      int overflow = 0;
      const long long number = PyLong_AsLongLongAndOverflow(a, &overflow);
      if (overflow) return false;
      key.insert(key.end(), {kInt, number});
    } else if (PyFloat_CheckExact(a)) {
      key.insert(key.end(), {kFloat, std::bit_cast<int64_t>(PyFloat_AS_DOUBLE(a))});
    } else if (look_at_tensor(a, v) && !negated(a)) {
      key.push_back(kTensor | static_cast<int64_t>(v.dtype) << 8 | v.shape.rank << 16 | int64_t{aligned(v)} << 24);
      key.insert(key.end(), v.shape.d.begin(), v.shape.d.begin() + v.shape.rank);
      key.insert(key.end(), v.strides.d.begin(), v.strides.d.begin() + v.shape.rank);
    } else {
      return false;
    }
  }
  return true;
}

// What to do for arguments of a kind. A plan is any object.
class TensorPlans {
 public:
  explicit TensorPlans(size_t most) : most_(most) {}

  nb::object find(nb::list arguments) {
    std::vector<int64_t> wanted;  // of this call: another thread may look for its plan while a tensor is asked
    if (plans_.empty() || stopping() || !key_of(arguments, wanted)) return nb::none();
    const auto found = std::find_if(plans_.begin(), plans_.end(), [&](const auto& plan) { return plan.first == wanted; });
    if (found == plans_.end()) return nb::none();
    std::rotate(plans_.begin(), found, found + 1);
    return plans_.front().second;
  }

  std::vector<int64_t> key(nb::list arguments) {
    std::vector<int64_t> key;
    if (stopping() || !key_of(arguments, key)) key.clear();
    return key;
  }

  void add(std::vector<int64_t> key, nb::object plan) {
    plans_.insert(plans_.begin(), {std::move(key), std::move(plan)});
    nb::object oldest;  // goes when the list is whole
    if (plans_.size() > most_) {
      oldest = std::move(plans_.back().second);
      plans_.pop_back();
    }
  }

  void clear() { const auto old = std::exchange(plans_, {}); }
  size_t size() const { return plans_.size(); }

 private:
  const size_t most_;
  std::vector<std::pair<std::vector<int64_t>, nb::object>> plans_;  // used last first
};

bool same_places(const Value& v, const Dims& shape, const Dims& strides) {
  if (!(v.shape == shape)) return false;
  for (int i = 0; i < shape.rank; ++i)
    if (shape[i] > 1 && v.strides[i] != strides[i]) return false;
  return true;
}

// A flush that is run again on tensors in a list, by their numbers there ("slots").
class TensorReplay {
 public:
  struct Input {
    Py_ssize_t slot;
    int64_t offset;  // bytes from the tensor's first element
    bool sure;       // that the tensor has the shape and strides it had
    DType dtype;
    Dims shape, strides;
  };
  struct Output {
    Py_ssize_t slot;
    nb::object shape, dtype;
  };

  TensorReplay(const Graph& graph, const std::vector<std::pair<int64_t, int>>& given, std::vector<Input> inputs, const std::vector<int64_t>& results,
               std::vector<Output> outputs, nb::object empty, nb::object device)
      : replay_(graph, given, results), inputs_(std::move(inputs)), outputs_(std::move(outputs)), empty_(std::move(empty)), device_(std::move(device)) {}

  bool all_given() const { return replay_.all_given(); }
  std::vector<int64_t> slots() const {
    std::vector<int64_t> found;
    for (const auto& [input, number] : replay_.given()) found.push_back(inputs_[static_cast<size_t>(number)].slot);
    return found;
  }

  bool run(nb::list slots) {
    std::vector<Replay::Argument> arguments(inputs_.size());
    std::vector<nb::object> held;  // while another thread may run
    for (const auto& [input, number] : replay_.given()) {
      const Input& in = inputs_[static_cast<size_t>(number)];
      PyObject* const tensor = PyList_GetItem(slots.ptr(), in.slot);
      Value v;
      if (!tensor) throw nb::python_error();
      if (!look_at_tensor(tensor, v) || v.dtype != in.dtype || (!in.sure && (!same_places(v, in.shape, in.strides) || !aligned(v)))) return false;
      arguments[static_cast<size_t>(number)] = {static_cast<uint8_t*>(v.data) + in.offset, nullptr};
      if (!replay_.small) held.push_back(nb::borrow(tensor));
    }
    std::vector<void*> into(outputs_.size());
    static PyObject* const names = PyTuple_Pack(2, PyUnicode_InternFromString("dtype"), PyUnicode_InternFromString("device"));
    for (size_t i = 0; i < outputs_.size(); ++i) {
      PyObject* const call[] = {nullptr, outputs_[i].shape.ptr(), outputs_[i].dtype.ptr(), device_.ptr()};
      PyObject* const tensor = PyObject_Vectorcall(empty_.ptr(), call + 1, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, names);
      Value v;
      if (!tensor) throw nb::python_error();
      if (!look_at_tensor(tensor, v)) {
        Py_DECREF(tensor);
        return false;
      }
      into[i] = v.data;
      if (!replay_.small) held.push_back(nb::borrow(tensor));
      if (PyList_SetItem(slots.ptr(), outputs_[i].slot, tensor) != 0) throw nb::python_error();
    }
    if (!replay_.begin()) return false;
    if (replay_.is_short()) {
      replay_.run_short_into(arguments.data(), into.data());
    } else if (replay_.small) {
      replay_.run_into(arguments.data(), into.data());
    } else {
      nb::gil_scoped_release unlocked;
      replay_.run_into(arguments.data(), into.data());
    }
    return true;
  }

 private:
  Replay replay_;
  const std::vector<Input> inputs_;
  const std::vector<Output> outputs_;
  const nb::object empty_, device_;  // makes a tensor, where
};

// inputs: (value, slot, offset in bytes, None or (shape, strides) to compare), outputs: (value, slot, shape, the framework's dtype).
nb::object tensor_replay(Graph& graph, nb::handle inputs, nb::handle outputs, nb::object empty, nb::object device) {
  std::vector<std::pair<int64_t, int>> given;
  std::vector<TensorReplay::Input> ins;
  const Items values(inputs, "inputs");
  for (size_t i = 0; i < values.size(); ++i) {
    const Items parts(values[i], "an input");
    if (parts.size() != 4) throw nb::type_error("tensor_replay: an input is (value, slot, offset, geometry)");
    const int64_t v = to_int(parts[0], "input");
    given.emplace_back(v, static_cast<int>(i));
    TensorReplay::Input in{
        static_cast<Py_ssize_t>(to_int(parts[1], "slot")), to_int(parts[2], "offset"), parts[3].is_none(), graph.node(v).instr.dtype, {}, {}};
    if (!in.sure) {
      const Items geometry(parts[3], "geometry");
      if (geometry.size() != 2) throw nb::type_error("tensor_replay: a geometry is (shape, strides)");
      in.shape = to_dims(geometry[0], "shape");
      in.strides = to_dims(geometry[1], "strides");
    }
    ins.push_back(std::move(in));
  }
  std::vector<int64_t> results;
  std::vector<TensorReplay::Output> outs;
  const Items wanted(outputs, "outputs");
  for (size_t i = 0; i < wanted.size(); ++i) {
    const Items parts(wanted[i], "an output");
    if (parts.size() != 4) throw nb::type_error("tensor_replay: an output is (value, slot, shape, dtype)");
    results.push_back(to_int(parts[0], "output"));
    if (graph.node(results.back()).pending < 0) return nb::none();
    outs.push_back({static_cast<Py_ssize_t>(to_int(parts[1], "slot")), nb::borrow(parts[2]), nb::borrow(parts[3])});
  }
  auto* replay = new TensorReplay(graph, given, std::move(ins), results, std::move(outs), std::move(empty), std::move(device));
  nb::object owned = nb::cast(replay, nb::rv_policy::take_ownership);
  return replay->all_given() ? owned : nb::none();
}

}  // namespace

void bind_tensor_replays(nb::module_& m) {
  nb::class_<TensorPlans>(m, "TensorPlans", "What to do for arguments of a kind: dtypes, shapes and strides of tensors, and plain values.")
      .def(nb::init<size_t>(), "most"_a)
      .def("find", &TensorPlans::find, "arguments"_a, "The plan for these, None if there is none or a debugger is attached.")
      .def("key", &TensorPlans::key, "arguments"_a, "Of arguments; empty if they are of kinds that are not known, or while a debugger is attached.")
      .def("add", &TensorPlans::add, "key"_a, "plan"_a)
      .def("clear", &TensorPlans::clear)
      .def("__len__", &TensorPlans::size);
  nb::class_<TensorReplay>(m, "TensorReplay", "A flush that can be run again on tensors in a list.")
      .def("run", &TensorReplay::run, "slots"_a,
           "Puts the results into their slots. False, nothing run: a tensor is another than it was, or hooks, checks or the memory log want a launch.")
      .def("slots", &TensorReplay::slots, "Slots that it reads.");
  m.def("tensor_replay", &tensor_replay, "graph"_a, "inputs"_a, "outputs"_a, "empty"_a, "device"_a,
        "What is recorded now, to be run again: inputs (value, slot, offset in bytes, None or the shape and strides to compare), outputs (value, slot, shape, "
        "dtype) made by empty(shape, dtype=dtype, device=device). None: an input is not among them, or an output is not pending.");
}

}  // namespace dvm
