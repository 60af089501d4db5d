#include "bind_common.h"

#include <cmath>

#include "device_memory.h"

namespace dvm {

Items::Items(nb::handle sequence, const char* what) : fast_(PySequence_Fast(sequence.ptr(), "")) {
  if (fast_) return;
  PyErr_Format(PyExc_TypeError, "%s must be a tuple or list, not %s", what, Py_TYPE(sequence.ptr())->tp_name);
  throw nb::python_error();
}

int64_t to_int(nb::handle number, const char* what) {
  if (PyLong_CheckExact(number.ptr())) {
    int overflow = 0;
    const long long n = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
    if (!overflow) return n;
    throw UserError(std::string(what) + ": " + nb::cast<std::string>(nb::str(number)) + " does not fit in 64 bits");
  }
  PyObject* index = PyNumber_Index(number.ptr());
  if (!index) {
    PyErr_Format(PyExc_TypeError, "%s must be an integer, not %s", what, Py_TYPE(number.ptr())->tp_name);
    throw nb::python_error();
  }
  return to_int(nb::steal(index), what);
}

Dims to_dims(nb::handle sequence, const char* what) {
  const Items items(sequence, what);
  if (items.size() > static_cast<size_t>(kMaxRank))
    throw UserError(std::string(what) + ": rank " + std::to_string(items.size()) + " is above " + std::to_string(kMaxRank));
  Dims dims;
  dims.rank = static_cast<int>(items.size());
  for (int i = 0; i < dims.rank; ++i) dims[i] = to_int(items[static_cast<size_t>(i)], what);
  return dims;
}

DType to_dtype(int64_t code, const char* what) {
  if (code < 0 || code >= kDTypes) throw UserError(std::string(what) + ": no dtype " + std::to_string(code));
  return static_cast<DType>(code);
}

Imm to_imm(nb::handle number) {
  Imm imm;
  PyObject* o = number.ptr();
  if (PyFloat_Check(o)) {
    imm.f = PyFloat_AS_DOUBLE(o);
  } else if (PyIndex_Check(o)) {
    const nb::object index = nb::steal(PyNumber_Index(o));
    if (!index.is_valid()) throw nb::python_error();
    imm.is_int = true;
    imm.i = to_int(index, "immediate");
    imm.f = static_cast<double>(imm.i);
    return imm;
  } else {
    const nb::object f = nb::steal(PyNumber_Float(o));
    if (!f.is_valid()) throw nb::python_error();
    imm.f = PyFloat_AS_DOUBLE(f.ptr());
  }
  return imm_of(imm.f);
}

Imm imm_of(double number) {
  Imm imm;
  imm.f = number;
  // The integer form of a float is used by integer ops only; out of range it saturates.
  imm.i = std::isnan(number) ? 0 : number >= 9.2e18 ? INT64_MAX : number <= -9.2e18 ? INT64_MIN : static_cast<int64_t>(number);
  return imm;
}

nb::object from_imm(const Imm& imm) { return imm.is_int ? nb::object(nb::int_(imm.i)) : nb::object(nb::float_(imm.f)); }

nb::tuple from_dims(const Dims& dims) { return from_ints(std::vector<int64_t>(dims.d.begin(), dims.d.begin() + dims.rank)); }

std::shared_ptr<void> hold(nb::handle object) {
  if (object.is_none()) return nullptr;
  return {object.inc_ref().ptr(), [](void* held) {
            if (nb::detail::cleanup_guard guard{}) Py_DECREF(static_cast<PyObject*>(held));
          }};
}

nb::dlpack::dtype dlpack_type(DType t) {
  using Code = nb::dlpack::dtype_code;
  constexpr uint8_t kFloat = static_cast<uint8_t>(Code::Float), kInt = static_cast<uint8_t>(Code::Int), kUInt = static_cast<uint8_t>(Code::UInt),
                    kBool = static_cast<uint8_t>(Code::Bool), kBfloat = static_cast<uint8_t>(Code::Bfloat);
  constexpr uint8_t codes[kDTypes] = {0, kFloat, kFloat, kBfloat, kFloat, kBool, kInt, kUInt, kInt, kInt};
  return {codes[static_cast<size_t>(t)], static_cast<uint8_t>(8 * item_size(t)), 1};
}

nb::object to_array(const Value& value, const LeasePtr& lease, bool writable) {
  if (!value.data) return nb::none();
  if (on_device(value.data)) {
    Value here;
    {
      nb::gil_scoped_release unlocked;
      here = host_value(value);
    }
    return to_array(here, nullptr, writable);
  }
  nb::dlpack::dtype dtype = dlpack_type(value.dtype);
  if (value.dtype == DType::kBF16) dtype.code = static_cast<uint8_t>(nb::dlpack::dtype_code::UInt);  // it has no NumPy dtype
  struct Owner {
    std::shared_ptr<Storage> storage;
    LeasePtr lease;
  };
  const nb::capsule owner(new Owner{value.owner, lease}, [](void* o) noexcept { delete static_cast<Owner*>(o); });
  size_t shape[kMaxRank];
  for (int i = 0; i < value.shape.rank; ++i) shape[i] = static_cast<size_t>(value.shape[i]);
  const auto rank = static_cast<size_t>(value.shape.rank);
  if (writable) return nb::cast(nb::ndarray<nb::numpy>(value.data, rank, shape, owner, value.strides.d.data(), dtype));
  return nb::cast(nb::ndarray<nb::numpy, nb::ro>(value.data, rank, shape, owner, value.strides.d.data(), dtype));
}

nb::dict stats_counts(const Stats& s) {
  using S = Stats;
  nb::dict d = told(s, "count", &S::count, "finite", &S::finite, "zero", &S::zero, "nan", &S::nan, "pos_inf", &S::pos_inf, "neg_inf", &S::neg_inf);
  nb::list bins;
  for (const uint64_t n : s.histogram) bins.append(n);
  d["histogram"] = bins;
  return d;
}

nb::dict stats_dict(const Stats& s) {
  nb::dict d = stats_counts(s);
  const double none = std::nan("");
  d["min"] = s.finite ? s.min : none;
  d["max"] = s.finite ? s.max : none;
  d["mean"] = s.finite ? s.mean : none;
  d["abs_mean"] = s.finite ? s.abs_mean : none;
  d["std"] = s.finite ? s.deviation() : none;
  return d;
}

}  // namespace dvm
