// dvm.tensor's arrays: operators and what the Python class Array is built on. What the operators' fast paths do not take (other types,
// mixed dtypes, errors to be told) goes to Array's methods.
#include "array.h"

#include "device_memory.h"
#include "place.h"

namespace dvm {

using namespace nb::literals;

namespace {

PyObject* dtype_objects[kDTypes] = {};  // dvm.float32 ..., by code

Tensor& tensor_at(PyObject* o) { return *nb::inst_ptr<Tensor>(nb::handle(o)); }

bool is_integer(DType t) { return t >= DType::kI8; }

// Whether an integer dtype holds a number.
bool fits(DType t, int64_t number) {
  switch (t) {
    case DType::kI8: return number == static_cast<int8_t>(number);
    case DType::kU8: return number == static_cast<uint8_t>(number);
    case DType::kI32: return number == static_cast<int32_t>(number);
    default: return true;
  }
}

// A Python number as an array's dtype holds it; false: not for the fast path.
bool number_for(const Tensor& t, PyObject* number, Imm* imm) {
  if (is_float(t.dtype)) {
    if (PyFloat_CheckExact(number)) {
      *imm = imm_of(PyFloat_AS_DOUBLE(number));
      return true;
    }
    if (!PyLong_CheckExact(number)) return false;
    const double f = PyLong_AsDouble(number);
    if (f == -1.0 && PyErr_Occurred()) {
      PyErr_Clear();
      return false;
    }
    *imm = imm_of(f);
    return true;
  }
  if (!is_integer(t.dtype) || !PyLong_CheckExact(number)) return false;
  int overflow = 0;
  imm->i = PyLong_AsLongLongAndOverflow(number, &overflow);
  imm->f = static_cast<double>(imm->i);
  imm->is_int = true;
  return !overflow && fits(t.dtype, imm->i);
}

// null among the operands: immediate 0 stands there.
Instr& draft(const Recording& recording, Op op, Tensor* const* operands, size_t count) {
  Instr& in = recording.recorder().graph.draft();
  in.op = op;
  in.place = user_place(0);
  for (size_t i = 0; i < count; ++i) in.operands.push_back(operands[i] ? static_cast<int32_t>(operands[i]->value) : -1);
  return in;
}

// What the C API wants of a slot: a new reference, or null with an exception set.
template <class F>
PyObject* guarded(F&& f) {
  try {
    return f().release().ptr();
  } catch (nb::python_error& e) { e.restore(); } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
  return nullptr;
}

nb::object fast_binary(Op op, PyObject* self, PyObject* other, bool swapped) {
  Tensor& x = tensor_at(self);
  if (op == Op::kDIV && !is_float(x.dtype)) return {};
  Imm imm;
  const bool array = is_array(other);
  if (array ? tensor_at(other).dtype != x.dtype : !number_for(x, other, &imm)) return {};
  try {
    Tensor* operands[] = {&x, array ? &tensor_at(other) : nullptr};
    if (swapped) std::swap(operands[0], operands[1]);
    Recording recording(operands, 2);
    RecordSample sample;
    Instr& in = draft(recording, op, operands, 2);
    if (!array) in.imms.push_back(imm);
    return recording.done(false, sample);
  } catch (const UserError&) {
    return {};  // told by the slow path
  }
}

nb::object binary(Op op, PyObject* self, PyObject* other, bool swapped) {
  nb::object made = fast_binary(op, self, other, swapped);
  if (made.is_valid()) return made;
  if (op == Op::kDIV) return nb::handle(self).attr("_divide")(nb::handle(other), swapped);
  return nb::handle(self).attr("_binary")(op_name(op), nb::handle(other), swapped);
}

template <Op op>
PyObject* binary_slot(PyObject* a, PyObject* b) {
  const bool swapped = !is_array(a);
  if (swapped && !is_array(b)) Py_RETURN_NOTIMPLEMENTED;
  return guarded([&] { return swapped ? binary(op, b, a, true) : binary(op, a, b, false); });
}

template <Op op>
PyObject* unary_slot(PyObject* a) {
  return guarded([&]() -> nb::object {
    if (is_array(a)) {
      try {
        Tensor* const operand = &tensor_at(a);
        Recording recording(&operand, 1);
        RecordSample sample;
        draft(recording, op, &operand, 1);
        return recording.done(false, sample);
      } catch (const UserError&) {  // told by the slow path
      }
    }
    return nb::handle(a).attr("_op")(op_name(op));
  });
}

PyObject* compare_slot(PyObject* a, PyObject* b, int how) {
  constexpr Op ops[] = {Op::kLESS, Op::kLESS_EQUAL, Op::kEQUAL, Op::kNOT_EQUAL, Op::kGREATER, Op::kGREATER_EQUAL};  // Py_LT ... Py_GE
  if (!is_array(a)) Py_RETURN_NOTIMPLEMENTED;
  return guarded([&] { return binary(ops[how], a, b, false); });
}

// The one element of an array as a Python number; none: not for the fast path (more elements, on a device, an error to be told).
nb::object item_of(PyObject* self) {
  Tensor& t = tensor_at(self);
  if (t.shape.size() != 1) return {};
  note_read();
  try {
    compute(t);
  } catch (const UserError&) { return {}; } catch (const std::bad_alloc&) {
    return {};
  }
  const void* const at = t.memory.data;
  if (on_device(at)) return {};
  const auto& casts = kernels().cast[static_cast<size_t>(t.dtype)];
  if (is_float(t.dtype)) {
    double number = 0;
    casts[static_cast<size_t>(DType::kF64)](&number, at, 1);
    return nb::steal(PyFloat_FromDouble(number));
  }
  int64_t number = 0;
  casts[static_cast<size_t>(DType::kI64)](&number, at, 1);
  return nb::steal(t.dtype == DType::kBool ? PyBool_FromLong(number != 0) : PyLong_FromLongLong(number));
}

// What Python's conversions are applied to: the element, or NumPy's array, which says what is wrong with more or fewer than one.
nb::object convertible(PyObject* self) {
  nb::object found = item_of(self);
  if (found.is_valid()) return found;
  const nb::object array = nb::handle(self).attr("numpy")();
  return tensor_at(self).shape.size() == 1 ? array.attr("item")() : array;
}

template <PyObject* (*convert)(PyObject*)>
PyObject* number_slot(PyObject* self) {
  return guarded([&] {
    nb::object made = nb::steal(convert(convertible(self).ptr()));
    if (!made.is_valid()) throw nb::python_error();
    return made;
  });
}

PyObject* to_index(PyObject* o) {
  if (PyLong_Check(o)) return PyNumber_Long(o);  // of True 1: an index is exactly an int
  if (!PyFloat_Check(o)) return PyNumber_Index(o);
  PyErr_SetString(PyExc_TypeError, "only integer scalar arrays can be converted to a scalar index");
  return nullptr;
}

int truth_slot(PyObject* self) {
  PyObject* const found = guarded([&] { return convertible(self); });
  if (!found) return -1;
  const int truth = PyObject_IsTrue(found);
  Py_DECREF(found);
  return truth;
}

PyType_Slot slots[] = {
    {Py_nb_add, reinterpret_cast<void*>(binary_slot<Op::kADD>)},
    {Py_nb_subtract, reinterpret_cast<void*>(binary_slot<Op::kSUB>)},
    {Py_nb_multiply, reinterpret_cast<void*>(binary_slot<Op::kMUL>)},
    {Py_nb_true_divide, reinterpret_cast<void*>(binary_slot<Op::kDIV>)},
    {Py_nb_and, reinterpret_cast<void*>(binary_slot<Op::kBIT_AND>)},
    {Py_nb_or, reinterpret_cast<void*>(binary_slot<Op::kBIT_OR>)},
    {Py_nb_xor, reinterpret_cast<void*>(binary_slot<Op::kBIT_XOR>)},
    {Py_nb_lshift, reinterpret_cast<void*>(binary_slot<Op::kSHIFT_LEFT>)},
    {Py_nb_rshift, reinterpret_cast<void*>(binary_slot<Op::kSHIFT_RIGHT>)},
    {Py_nb_remainder, reinterpret_cast<void*>(binary_slot<Op::kREMAINDER>)},
    {Py_nb_negative, reinterpret_cast<void*>(unary_slot<Op::kNEG>)},
    {Py_nb_absolute, reinterpret_cast<void*>(unary_slot<Op::kABS>)},
    {Py_nb_invert, reinterpret_cast<void*>(unary_slot<Op::kBIT_NOT>)},
    {Py_tp_richcompare, reinterpret_cast<void*>(compare_slot)},
    {Py_nb_bool, reinterpret_cast<void*>(truth_slot)},
    {Py_nb_float, reinterpret_cast<void*>(number_slot<PyNumber_Float>)},
    {Py_nb_int, reinterpret_cast<void*>(number_slot<PyNumber_Long>)},
    {Py_nb_index, reinterpret_cast<void*>(number_slot<to_index>)},
    {0, nullptr},
};

// That many of something, on the stack if they are few.
template <class T>
class Several {
 public:
  explicit Several(size_t count) : size_(count), many_(count > kFew ? count : 0), at_(many_.empty() ? few_ : many_.data()) {}
  Several(const Several&) = delete;
  size_t size() const { return size_; }
  T& operator[](size_t i) { return at_[i]; }
  T* data() { return at_; }

 private:
  static constexpr size_t kFew = 8;
  const size_t size_;
  T few_[kFew];
  std::vector<T> many_;
  T* const at_;
};

// Any instruction: operands are arrays, None where immediate 0 stands.
nb::object record(int opcode, nb::handle operands, nb::handle attrs, nb::handle shape, int dtype, nb::handle imms) {
  if (opcode <= 0 || opcode >= kOps) throw UserError("no opcode " + std::to_string(opcode));
  const auto op = static_cast<Op>(opcode);
  // All that may run Python comes before the recording.
  const Items arrays(operands, "operands"), numbers(attrs, "attrs"), scalars(imms, "imms");
  Several<Tensor*> tensors(arrays.size());
  Several<int64_t> integers(numbers.size());
  Several<Imm> immediates(scalars.size());
  for (size_t i = 0; i < arrays.size(); ++i) {
    const nb::handle a = arrays[i];
    if (!a.is_none() && !nb::isinstance<Tensor>(a)) throw nb::type_error("record: operands are arrays or None");
    tensors[i] = a.is_none() ? nullptr : &tensor_at(a.ptr());
  }
  for (size_t i = 0; i < numbers.size(); ++i) integers[i] = to_int(numbers[i], "attribute");
  for (size_t i = 0; i < scalars.size(); ++i) immediates[i] = to_imm(scalars[i]);
  const DType given = to_dtype(dtype, op_name(op));
  const Dims dims = shape.is_none() ? Dims{} : to_dims(shape, op_name(op));

  Recording recording(tensors.data(), tensors.size());
  RecordSample sample;
  Instr& in = draft(recording, op, tensors.data(), tensors.size());
  in.attrs.assign(integers.data(), integers.data() + integers.size());
  in.imms.assign(immediates.data(), immediates.data() + immediates.size());
  in.dtype = given;
  in.shape = dims;
  return recording.done(!shape.is_none(), sample);
}

// A reduction over one axis or all; None: not for the fast path.
nb::object reduced(nb::handle self, int opcode, nb::handle axis, nb::handle keepdims) {
  Tensor* const operand = &tensor_at(self.ptr());
  const auto op = static_cast<Op>(opcode);
  const int rank = operand->shape.rank;
  const bool widens = op == Op::kSUM || op == Op::kMEAN || op == Op::kPROD;  // other dtypes than floats, first
  if (!PyBool_Check(keepdims.ptr()) || (widens && !is_float(operand->dtype)) || rank == 0) return nb::none();
  int first = 0, end = rank;
  if (!axis.is_none()) {
    if (!PyLong_CheckExact(axis.ptr())) return nb::none();
    int overflow = 0;
    const long number = PyLong_AsLongAndOverflow(axis.ptr(), &overflow);
    if (overflow || number < -rank || number >= rank) return nb::none();
    first = static_cast<int>(number < 0 ? number + rank : number);
    end = first + 1;
  }
  try {
    Recording recording(&operand, 1);
    RecordSample sample;
    Instr& in = draft(recording, op, &operand, 1);
    in.attrs.push_back(keepdims.ptr() == Py_True);
    for (int i = first; i < end; ++i) in.attrs.push_back(i);
    return recording.done(false, sample);
  } catch (const UserError&) {
    return nb::none();  // told by the slow path
  }
}

nb::object numpy_of(nb::handle self) {
  Tensor& t = tensor_at(self.ptr());
  compute(t);
  if (!t.array.is_valid()) {
    nb::object array = to_array(t.memory, t.lease);  // other threads may run meanwhile
    if (!t.array.is_valid()) t.array = std::move(array);
  }
  return t.array;
}

}  // namespace

void bind_arrays(nb::module_& m) {
  const auto nothing = nb::tuple();
  nb::class_<Recorder>(m, "Recorder", "A graph being recorded by arrays, and the arrays that wait for its values.")
      .def_prop_ro("graph", [](const Recorder& r) { return r.graph_object; })
      .def("take_over", &Recorder::take_over, "Arrays whose values are in memory now have them.")
      .def("wanted", &Recorder::wanted, "Ids of values that arrays wait for: the next flush must keep them.")
      .def(
          "find", [](const Recorder& r, const Tensor& t) { return t.recorded_by == r.number ? nb::object(nb::int_(t.value)) : nb::object(nb::none()); },
          "array"_a, "The array's value id in this graph, None if it is not known there.");
  nb::class_<Tensor>(m, "Tensor", nb::type_slots(slots), "What dvm.Array is made of: a value in memory or still to be computed.")
      .def_prop_ro("dtype", [](const Tensor& t) { return nb::borrow(dtype_objects[static_cast<int>(t.dtype)]); })
      .def_prop_ro("shape", [](const Tensor& t) { return from_dims(t.shape); })
      .def_prop_ro("ndim", [](const Tensor& t) { return t.shape.rank; })
      .def_prop_ro("size", [](const Tensor& t) { return t.shape.size(); })
      .def_prop_ro(
          "in_memory", [](const Tensor& t) { return t.ready; }, "Computed, or an input.")
      .def_prop_ro(
          "on_device", [](const Tensor& t) { return on_device(t.memory.data); }, "In memory that only a device reads.")
      .def_prop_ro("constant", &Tensor::constant, "Made by dvm.constant: nobody can write its memory, and products keep its panels.")
      .def_prop_ro(
          "given_away", [](const Tensor& t) { return t.given; }, "A call took it (donate).")
      .def("_numpy", &numpy_of)
      .def(
          "_item",
          [](nb::handle self) {
            nb::object found = item_of(self.ptr());
            return found.is_valid() ? found : nb::object(nb::none());
          },
          "The element of an array of one, as a Python number; None: numpy() tells more.")
      .def("_reduced", &reduced, "opcode"_a, "axis"_a.none(), "keepdims"_a,
           "A reduction over one axis or, None, all of them; None if it takes more than that.");
  m.def("record", &record, "opcode"_a, "operands"_a, "attrs"_a = nothing, "shape"_a.none() = nb::none(), "dtype"_a = 0, "imms"_a = nothing,
        "Records an instruction of the user's line where the calling thread records and returns the Array of its result. Operands are arrays, "
        "None where immediate 0 stands. Error if they do not fit.");
  m.def(
      "give_away",
      [](nb::handle array) {
        compute(tensor_at(array.ptr()));
        tensor_at(array.ptr()).give_away();
      },
      "array"_a, "The array cannot be read any more.");
  m.def("constant_of", [](nb::handle array) { return constant_of(tensor_at(array.ptr())); }, "array"_a, "A copy that nobody can write.");
  m.def(
      "array_alias",
      [](nb::handle array) {
        Tensor& t = tensor_at(array.ptr());
        compute(t);
        return array_on(t.memory, t.lease, t.array);
      },
      "array"_a, "Another Array on the same memory.");
  m.def("current_recorder", &current_recorder, "Where the calling thread records: the graph of its active capture, or one of its own.");
  m.def(
      "set_active_capture", [](nb::handle capture, bool aside) { set_active_capture(capture.is_none() ? nullptr : capture.ptr(), aside); }, "capture"_a.none(),
      "aside"_a = false, "The calling thread's active capture, None: none. aside: only for a while, the captured call goes on.");
  m.def(
      "active_capture", [] { return active_capture() ? nb::borrow(active_capture()) : nb::object(nb::none()); },
      "The calling thread's active capture, None: none.");
  m.def(
      "set_array_class",
      [](nb::handle cls, nb::handle flush_capture, nb::handle dtypes, nb::handle numpy, nb::dict of_numpy) {
        set_array_class(cls);
        set_flush_of_capture(flush_capture);
        set_numpy(numpy, of_numpy);
        const Items objects(dtypes, "dtypes");
        for (size_t i = 0; i < objects.size() && i + 1 < kDTypes; ++i) dtype_objects[i + 1] = objects[i].inc_ref().ptr();
      },
      "cls"_a, "flush_capture"_a, "dtypes"_a, "numpy"_a, "of_numpy"_a,
      "The Python class of arrays, flush(capture), the dtype objects by code from 1, NumPy's array class, and the codes of NumPy's dtypes.");
}

}  // namespace dvm
