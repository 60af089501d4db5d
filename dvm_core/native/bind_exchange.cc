// Arrays on the memory of others, and theirs on ours: NumPy's buffers, frameworks' exchange tables, DLPack.
#include <string_view>

#include "array.h"
#include "device_memory.h"

namespace dvm {

using namespace nb::literals;

namespace {

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

// The table of a type; null: it has none. The first types that have one are remembered: a framework's tensor and what it makes of it.
const ExchangeTable* exchange_of(PyTypeObject* type) {
  constexpr size_t kTypes = 4;
  static std::pair<PyTypeObject*, const ExchangeTable*> known[kTypes] = {};
  for (const auto& [of, table] : known)
    if (of == type) return table;
  const nb::object capsule = nb::getattr(nb::handle(reinterpret_cast<PyObject*>(type)), "__dlpack_c_exchange_api__", nb::object());
  const auto* found = capsule.is_valid() ? static_cast<const ExchangeTable*>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api")) : nullptr;
  if (!found) PyErr_Clear();
  if (found && found->major != 1) found = nullptr;
  if (!found) return nullptr;
  for (auto& [of, table] : known) {
    if (of) continue;
    Py_INCREF(type);  // never to be another type at this address
    of = type;
    table = found;
    break;
  }
  return found;
}

DType dtype_of(const nb::dlpack::dtype& t) {
  for (int code = 1; code < kDTypes; ++code) {
    const nb::dlpack::dtype known = dlpack_type(static_cast<DType>(code));
    if (known.code == t.code && known.bits == t.bits && t.lanes == 1) return static_cast<DType>(code);
  }
  return DType::kNone;
}

// An answer of a type that may not know the question: nothing, if it has no such attribute or none that can be called.
nb::object answer(PyObject* found) {
  if (!found) {
    if (!PyErr_ExceptionMatches(PyExc_AttributeError) && !PyErr_ExceptionMatches(PyExc_TypeError)) throw nb::python_error();
    PyErr_Clear();
  }
  return nb::steal(found);
}

// object.name(), without a bound method in between.
nb::object ask(nb::handle object, PyObject* name) {
  PyObject* self = object.ptr();
  return answer(PyObject_VectorcallMethod(name, &self, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
}

// What wants a gradient must not lose it unseen; a lazily negated tensor has other elements in memory. Whose type cannot say is not taken.
bool is_plain(nb::handle tensor) {
  static PyObject* const requires_grad = PyUnicode_InternFromString("requires_grad");
  static PyObject* const is_neg = PyUnicode_InternFromString("is_neg");
  return answer(PyObject_GetAttr(tensor.ptr(), requires_grad)).is(nb::bool_(false)) && ask(tensor, is_neg).is(nb::bool_(false));
}

// What keeps a tensor's memory where it is. The tensor itself does not: `x.data = other` and `x.set_(other)` exchange its storage, and
// growing it moves a storage, unless NumPy has seen the tensor. Null: its type has no storage to ask for.
LeasePtr lease_of_storage(nb::handle tensor, DType dtype) {
  static PyObject* const untyped_storage = PyUnicode_InternFromString("untyped_storage");
  static PyObject* const resizable = PyUnicode_InternFromString("resizable");
  const nb::object storage = ask(tensor, untyped_storage);
  if (!storage.is_valid()) return nullptr;
  if (!ask(storage, resizable).is(nb::bool_(false)))
    (dtype == DType::kBF16 ? tensor.attr("view")(nb::module_::import_("torch").attr("int16")) : nb::borrow(tensor)).attr("numpy")();
  return lease_of(storage);
}

// None: not for this way.
nb::object from_exchange(nb::handle tensor) {
  Value v;
  if (!exchange_of(Py_TYPE(tensor.ptr())) || !is_plain(tensor) || !look_at_tensor(tensor, v)) return nb::none();
  LeasePtr lease = lease_of_storage(tensor, v.dtype);
  if (!lease) return nb::none();
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

}  // namespace

bool look_at_tensor(nb::handle tensor, Value& v) {
  const ExchangeTable* table = exchange_of(Py_TYPE(tensor.ptr()));
  if (!table) return false;
  nb::dlpack::dltensor seen{};
  if (table->look(tensor.ptr(), &seen) != 0) {
    PyErr_Clear();
    return false;
  }
  v.dtype = dtype_of(seen.dtype);
  constexpr int kCpu = 1;
  if (v.dtype == DType::kNone || seen.device.device_type != kCpu || seen.ndim > kMaxRank) return false;
  v.data = seen.data ? static_cast<uint8_t*>(seen.data) + seen.byte_offset : nullptr;
  v.shape.rank = seen.ndim;
  for (int i = 0; i < seen.ndim; ++i) v.shape[i] = seen.shape[i];
  v.strides = contiguous_strides(v.shape);
  if (seen.strides)
    for (int i = 0; i < seen.ndim; ++i) v.strides[i] = seen.strides[i];
  return true;
}

void set_numpy(nb::handle array, nb::dict dtypes) {
  numpy_array = reinterpret_cast<PyTypeObject*>(array.inc_ref().ptr());
  for (const auto& [dtype, code] : dtypes) numpy_dtypes[nb::cast<int>(code)] = dtype.inc_ref().ptr();
}

void bind_exchange(nb::module_& m) {
  m.def("array_of", &array_of, "data"_a, "An Array on the memory of a NumPy array or a framework's CPU tensor; None if it takes more than that.");
  m.def("array_from_numpy", &from_numpy, "array"_a, "dtype"_a, "An Array on the memory of a NumPy array whose items are of that dtype.");
  m.def("array_from_dlpack", &from_dlpack, "capsule"_a, "An Array on the memory of what __dlpack__ gave, which must live on the CPU.");
  m.def("exported", &exported, "array"_a, "dtype"_a, "An object with __dlpack__ on the memory of a NumPy array whose items are of that dtype.");
}

}  // namespace dvm
