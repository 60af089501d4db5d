// dvm.tensor's arrays: operators and what the Python class Array is built on. What the operators' fast paths do not take (other types,
// mixed dtypes, errors to be told) goes to Array's methods.
#include "array.h"

#include <string_view>

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

LeasePtr lease_of(nb::handle object) {
  auto lease = std::make_shared<Lease>();
  lease->keep = hold(object);
  return lease;
}

nb::object from_numpy(nb::handle array, int dtype) {
  Py_buffer buffer;
  if (PyObject_GetBuffer(array.ptr(), &buffer, PyBUF_STRIDED_RO) != 0) throw nb::python_error();
  const std::unique_ptr<Py_buffer, void (*)(Py_buffer*)> release(&buffer, PyBuffer_Release);
  Value v;
  v.dtype = to_dtype(dtype, "tensor");
  const int item = item_size(v.dtype);
  if (item != buffer.itemsize) throw UserError("tensor: items of " + std::to_string(buffer.itemsize) + " bytes are no " + dtype_name(v.dtype));
  if (buffer.ndim > kMaxRank)
    throw UserError("tensor: an array of rank " + std::to_string(buffer.ndim) + "; a tensor has at most " + std::to_string(kMaxRank) + " axes");
  v.data = buffer.buf;
  if (on_device(v.data)) throw UserError("tensor: this is an address on a device, which the host cannot read");
  v.shape.rank = v.strides.rank = buffer.ndim;
  for (int i = 0; i < buffer.ndim; ++i) {
    v.shape[i] = buffer.shape[i];
    if (buffer.strides[i] % item) throw UserError("tensor: strides that are no multiple of the items' size");
    v.strides[i] = buffer.strides[i] / item;
  }
  return array_on(std::move(v), lease_of(array), nb::borrow(array));
}

// What frameworks tell about a tensor through DLPack's exchange table (version 1, the parts used here; dlpack.h of DLPack 1.3).
struct ExchangeTable {
  uint32_t major, minor;
  ExchangeTable* previous;
  void* others[3];
  int (*look)(void* object, nb::dlpack::dltensor* out);  // borrows; no synchronisation, which a CPU does not need
};

// The table of a type; null: it has none. The type asked for last is remembered.
const ExchangeTable* exchange_of(PyTypeObject* type) {
  static PyTypeObject* last = nullptr;
  static const ExchangeTable* table = nullptr;
  if (type == last) return table;
  const nb::object capsule = nb::getattr(nb::handle(reinterpret_cast<PyObject*>(type)), "__dlpack_c_exchange_api__", nb::object());
  const auto* found = capsule.is_valid() ? static_cast<const ExchangeTable*>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api")) : nullptr;
  if (!found) PyErr_Clear();
  if (found && found->major != 1) found = nullptr;
  if (!found) return nullptr;
  Py_INCREF(type);  // never to be another type at this address
  last = type;
  return table = found;
}

DType dtype_of(const nb::dlpack::dtype& t) {
  for (int code = 1; code < kDTypes; ++code) {
    const nb::dlpack::dtype known = dlpack_type(static_cast<DType>(code));
    if (known.code == t.code && known.bits == t.bits && t.lanes == 1) return static_cast<DType>(code);
  }
  return DType::kNone;
}

// What wants a gradient must not lose it unseen; a lazily negated tensor has other elements in memory. Whose type cannot say is not taken.
bool is_plain(nb::handle tensor) {
  const nb::object wants = nb::getattr(tensor, "requires_grad", nb::none()), negated = nb::getattr(tensor, "is_neg", nb::none());
  return wants.is(nb::bool_(false)) && PyCallable_Check(negated.ptr()) && negated().is(nb::bool_(false));
}

// What keeps a tensor's memory where it is. The tensor itself does not: `x.data = other` and `x.set_(other)` exchange its storage, and
// growing it moves a storage, unless NumPy has seen the tensor. Null: its type has no storage to ask for.
LeasePtr lease_of_storage(nb::handle tensor, DType dtype) {
  const nb::object untyped = nb::getattr(tensor, "untyped_storage", nb::none());
  if (!PyCallable_Check(untyped.ptr())) return nullptr;
  const nb::object storage = untyped();
  if (nb::cast<bool>(storage.attr("resizable")()))
    (dtype == DType::kBF16 ? tensor.attr("view")(nb::module_::import_("torch").attr("int16")) : nb::borrow(tensor)).attr("numpy")();
  return lease_of(storage);
}

// None: not for this way.
nb::object from_exchange(nb::handle tensor) {
  const ExchangeTable* table = exchange_of(Py_TYPE(tensor.ptr()));
  if (!table || !is_plain(tensor)) return nb::none();
  nb::dlpack::dltensor seen{};
  if (table->look(tensor.ptr(), &seen) != 0) {
    PyErr_Clear();
    return nb::none();
  }
  Value v;
  v.dtype = dtype_of(seen.dtype);
  constexpr int kCpu = 1;
  if (v.dtype == DType::kNone || seen.device.device_type != kCpu || seen.ndim > kMaxRank) return nb::none();
  LeasePtr lease = lease_of_storage(tensor, v.dtype);
  if (!lease) return nb::none();
  v.data = static_cast<uint8_t*>(seen.data) + seen.byte_offset;
  v.shape.rank = seen.ndim;
  for (int i = 0; i < seen.ndim; ++i) v.shape[i] = seen.shape[i];
  v.strides = contiguous_strides(v.shape);
  if (seen.strides)
    for (int i = 0; i < seen.ndim; ++i) v.strides[i] = seen.strides[i];
  return array_on(std::move(v), std::move(lease), {});
}

// Of a DLPack capsule, which is used up by that.
nb::object from_dlpack(nb::handle capsule) {
  const char* const name = PyCapsule_CheckExact(capsule.ptr()) ? PyCapsule_GetName(capsule.ptr()) : nullptr;
  const std::string_view kind = name ? name : "";
  if (kind == "used_dltensor" || kind == "used_dltensor_versioned")
    throw UserError("from_dlpack: __dlpack__ gave a capsule that somebody has taken already; it makes a new one at each call");
  if (kind != "dltensor" && kind != "dltensor_versioned")
    throw UserError(std::string("from_dlpack: __dlpack__ gave ") + Py_TYPE(capsule.ptr())->tp_name + ", which is no DLPack capsule");
  using Imported = nb::ndarray<nb::ro, nb::device::cpu>;
  Imported array;
  if (!nb::try_cast(capsule, array)) throw UserError("from_dlpack: __dlpack__ gave memory that is not the CPU's, or of a DLPack version after 1");
  Value v;
  v.dtype = dtype_of(array.dtype());
  if (v.dtype == DType::kNone) throw UserError("from_dlpack: this dtype is none of a tensor's");
  if (array.ndim() > static_cast<size_t>(kMaxRank))
    throw UserError("from_dlpack: an array of rank " + std::to_string(array.ndim()) + "; a tensor has at most " + std::to_string(kMaxRank) + " axes");
  v.data = const_cast<void*>(static_cast<const void*>(array.data()));
  v.shape.rank = v.strides.rank = static_cast<int>(array.ndim());
  for (int i = 0; i < v.shape.rank; ++i) {
    v.shape[i] = static_cast<int64_t>(array.shape(static_cast<size_t>(i)));
    v.strides[i] = array.stride(static_cast<size_t>(i));
  }
  auto lease = std::make_shared<Lease>();
  lease->keep = {new Imported(std::move(array)), [](void* held) {
                   if (nb::detail::cleanup_guard guard{}) delete static_cast<Imported*>(held);
                 }};
  return array_on(std::move(v), std::move(lease), {});
}

// A NumPy array's memory, whose items are of that dtype, for other libraries.
nb::object exported(nb::handle array, int dtype) {
  Py_buffer buffer;
  if (PyObject_GetBuffer(array.ptr(), &buffer, PyBUF_STRIDED_RO) != 0) throw nb::python_error();
  const std::unique_ptr<Py_buffer, void (*)(Py_buffer*)> release(&buffer, PyBuffer_Release);
  const DType t = to_dtype(dtype, "exported");
  if (item_size(t) != buffer.itemsize) throw UserError("exported: items of " + std::to_string(buffer.itemsize) + " bytes are no " + dtype_name(t));
  const auto rank = static_cast<size_t>(buffer.ndim);
  std::vector<size_t> shape(rank);
  std::vector<int64_t> strides(rank);
  for (size_t i = 0; i < rank; ++i) {
    shape[i] = static_cast<size_t>(buffer.shape[i]);
    if (buffer.strides[i] % item_size(t)) throw UserError("exported: strides that are no multiple of the items' size");
    strides[i] = buffer.strides[i] / item_size(t);
  }
  if (buffer.readonly) return nb::cast(nb::ndarray<nb::array_api, nb::ro>(buffer.buf, rank, shape.data(), array, strides.data(), dlpack_type(t)));
  return nb::cast(nb::ndarray<nb::array_api>(buffer.buf, rank, shape.data(), array, strides.data(), dlpack_type(t)));
}

// NumPy's array type, and its dtypes that are ours as they are, by code.
PyTypeObject* numpy_array = nullptr;
PyObject* numpy_dtypes[kDTypes] = {};

// An array of something whose memory can be used as it is; None: look closer.
nb::object array_of(nb::handle data) {
  if (Py_TYPE(data.ptr()) == numpy_array) {
    const nb::object dtype = data.attr("dtype");
    for (int code = 1; code < kDTypes; ++code) {
      if (numpy_dtypes[code] != dtype.ptr()) continue;
      try {
        return from_numpy(data, code);
      } catch (const UserError&) {
        return nb::none();  // odd strides
      }
    }
    return nb::none();
  }
  if (is_array(data)) return nb::borrow(data);
  return from_exchange(data);
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
  m.def("array_of", &array_of, "data"_a, "An Array on the memory of a NumPy array or a framework's CPU tensor; None if it takes more than that.");
  m.def("array_from_numpy", &from_numpy, "array"_a, "dtype"_a, "An Array on the memory of a NumPy array whose items are of that dtype.");
  m.def("array_from_dlpack", &from_dlpack, "capsule"_a, "An Array on the memory of what __dlpack__ gave, which must live on the CPU.");
  m.def("exported", &exported, "array"_a, "dtype"_a, "An object with __dlpack__ on the memory of a NumPy array whose items are of that dtype.");
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
        numpy_array = reinterpret_cast<PyTypeObject*>(numpy.inc_ref().ptr());
        for (const auto& [dtype, code] : of_numpy) numpy_dtypes[nb::cast<int>(code)] = dtype.inc_ref().ptr();
        const Items objects(dtypes, "dtypes");
        for (size_t i = 0; i < objects.size() && i + 1 < kDTypes; ++i) dtype_objects[i + 1] = objects[i].inc_ref().ptr();
      },
      "cls"_a, "flush_capture"_a, "dtypes"_a, "numpy"_a, "of_numpy"_a,
      "The Python class of arrays, flush(capture), the dtype objects by code from 1, NumPy's array class, and the codes of NumPy's dtypes.");
}

}  // namespace dvm
