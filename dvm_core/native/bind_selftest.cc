// Lets Python tests call any kernel of any SIMD level directly, with NumPy arrays.
#include <cstring>
#include <string>
#include <vector>

#include "bind_common.h"

namespace dvm {
namespace {

// The arguments after (level, table, op, dtype): arrays as buffers held until the call is over, and integers.
class Arguments {
 public:
  explicit Arguments(const nb::args& args) : args_(args), views_(args.size()) {}
  Arguments(const Arguments&) = delete;
  ~Arguments() {
    for (Py_buffer& view : views_)
      if (view.obj) PyBuffer_Release(&view);
  }

  int64_t integer(size_t i) const { return nb::cast<int64_t>(at(i)); }
  bool given(size_t i) const { return !at(i).is_none(); }
  // Bytes of an element of an array that was asked for before.
  int64_t item(size_t i) const { return views_[i].itemsize; }

  // The first element; `bytes` is what the kernel will touch if the array is contiguous (negative: not checked, for strided operands).
  template <class T = void>
  T* array(size_t i, int64_t bytes) {
    Py_buffer& view = views_[i];
    if (!view.obj && PyObject_GetBuffer(at(i).ptr(), &view, PyBUF_STRIDES) != 0) {
      PyErr_Clear();
      if (PyObject_GetBuffer(at(i).ptr(), &view, PyBUF_STRIDED_RO) != 0) throw nb::python_error();
    }
    if (view.len < bytes)
      throw nb::value_error(
          ("argument " + std::to_string(i) + " holds " + std::to_string(view.len) + " bytes, the kernel needs " + std::to_string(bytes)).c_str());
    return static_cast<T*>(view.buf);
  }

 private:
  nb::handle at(size_t i) const {
    if (i >= args_.size()) throw nb::type_error(("this kernel takes more than " + std::to_string(args_.size()) + " arguments").c_str());
    return args_[i];
  }

  const nb::args& args_;
  std::vector<Py_buffer> views_;
};

struct Call {
  const Kernels& k;
  int op, dtype;
  int64_t item;
  Arguments& a;
};

int64_t result_item(const Call& c) {
  static const std::vector<int> to_bool = {
#define DVM_OP(name, code, cls, arity, dtype, meaning) std::string(#dtype) == "bool" ? code : 0,
#include "ops.def"
#undef DVM_OP
  };
  for (int code : to_bool)
    if (code == c.op) return 1;
  return c.item;
}

nb::object ran(bool exists) { return nb::bool_(exists); }

nb::dict raw_stats(const Stats& s) {
  nb::dict d = stats_counts(s);
  d["min"] = s.min;
  d["max"] = s.max;
  d["mean"] = s.mean;
  d["m2"] = s.m2;
  return d;
}

nb::object call_unary(Call& c) {
  const int64_t n = c.a.integer(2);
  const Unary f = c.k.unary[c.op][c.dtype];
  if (f) f(c.a.array(0, n * result_item(c)), c.a.array(1, n * c.item), n);
  return ran(f);
}

// op: the dtype cast from; dtype: the one cast to.
nb::object call_cast(Call& c) {
  const int64_t n = c.a.integer(2);
  const Unary f = c.op < kDTypes ? c.k.cast[c.op][c.dtype] : nullptr;
  if (f) f(c.a.array(0, n * c.item), c.a.array(1, n * item_size(DType(c.op))), n);
  return ran(f);
}

nb::object call_binary(Call& c) {
  const int64_t n = c.a.integer(3);
  const Binary f = c.k.binary[c.op][c.dtype];
  if (f) f(c.a.array(0, n * result_item(c)), c.a.array(1, n * c.item), c.a.array(2, n * c.item), n);
  return ran(f);
}

nb::object call_row(Call& c, BinaryRow f) {
  const int64_t rows = c.a.integer(3), cols = c.a.integer(4);
  if (f) f(c.a.array(0, rows * cols * result_item(c)), c.a.array(1, rows * cols * c.item), c.a.array(2, rows * c.item), rows, cols);
  return ran(f);
}
nb::object call_binary_vs(Call& c) { return call_row(c, c.k.binary_vs[c.op][c.dtype]); }
nb::object call_binary_sv(Call& c) { return call_row(c, c.k.binary_sv[c.op][c.dtype]); }

nb::object call_select(Call& c) {
  const int64_t n = c.a.integer(4);
  const Select f = c.k.select[c.dtype];
  if (f) f(c.a.array(0, n * c.item), c.a.array<uint8_t>(1, n), c.a.array(2, n * c.item), c.a.array(3, n * c.item), n);
  return ran(f);
}

nb::object call_reduce_row(Call& c) {
  const int64_t rows = c.a.integer(2), cols = c.a.integer(3);
  const ReduceRow f = c.k.reduce_row[c.op][c.dtype];
  if (f) f(c.a.array(0, rows * c.item), c.a.array(1, rows * cols * c.item), rows, cols);
  return ran(f);
}

nb::object call_reduce_col(Call& c) {
  const int64_t rows = c.a.integer(2), cols = c.a.integer(3);
  const ReduceCol f = c.k.reduce_col[c.op][c.dtype];
  if (f) f(c.a.array(0, cols * c.item), c.a.array(1, rows * cols * c.item), rows, cols);
  return ran(f);
}

// The statistics of n elements; with a third argument: of runs of that many, merged.
nb::object call_stats(Call& c) {
  const int64_t n = c.a.integer(1), run = c.a.integer(2);
  const StatsOf f = c.k.stats[c.dtype];
  if (!f) return nb::none();
  const char* x = c.a.array<char>(0, n * c.item);
  Stats total;
  for (int64_t i = 0; i < n; i += run) {
    Stats part;
    f(&part, x + i * c.item, n - i < run ? n - i : run);
    stats_merge(&total, part);
  }
  return raw_stats(total);
}

nb::object call_check(Call& c) {
  const int64_t n = c.a.integer(1);
  const CheckOf f = c.k.check[c.dtype];
  if (!f) return nb::none();
  return nb::int_(f(c.a.array(0, n * c.item), n));
}

// dst, src, rows, cols, row_stride, col_stride (bytes); the item size comes from the dtype.
nb::object call_copy_in(Call& c) {
  const int64_t rows = c.a.integer(2), cols = c.a.integer(3);
  c.k.copy_in(c.a.array(0, rows * cols * c.item), c.a.array(1, -1), rows, cols, c.a.integer(4), c.a.integer(5), int(c.item));
  return ran(true);
}
nb::object call_copy_out(Call& c) {
  const int64_t rows = c.a.integer(2), cols = c.a.integer(3);
  c.k.copy_out(c.a.array(0, -1), c.a.array(1, rows * cols * c.item), rows, cols, c.a.integer(4), c.a.integer(5), int(c.item));
  return ran(true);
}

nb::object call_fill(Call& c) {
  const int64_t n = c.a.integer(2);
  c.k.fill(c.a.array(0, n * c.item), c.a.array(1, c.item), n, int(c.item));
  return ran(true);
}

// dst, seed, offset, first, n.
nb::object call_random(Call& c) {
  const int64_t n = c.a.integer(4);
  const Random f = c.k.random[c.dtype];
  if (f) f(c.a.array(0, n * c.item), static_cast<uint64_t>(c.a.integer(1)), static_cast<uint64_t>(c.a.integer(2)), c.a.integer(3), n);
  return ran(f);
}

int64_t packed_b_bytes(Call& c, int64_t k, int64_t n) { return int64_t(c.k.packed_b_bytes(k, n, DType(c.dtype))); }

nb::object call_packed_b_bytes(Call& c) { return nb::int_(packed_b_bytes(c, c.a.integer(0), c.a.integer(1))); }

// dst, b, k, n, b_row, b_col (elements).
nb::object call_pack_b(Call& c) {
  const int64_t k = c.a.integer(2), n = c.a.integer(3);
  c.k.pack_b(c.a.array(0, packed_b_bytes(c, k, n)), c.a.array(1, -1), c.a.integer(4), c.a.integer(5), k, n, DType(c.dtype));
  return ran(true);
}

// c, a, packed b, b, m, n, k, a_row, a_col, b_row, b_col, ldc. packed b None: b is read where it lies. c of halves: rounded.
nb::object call_gemm(Call& c) {
  GemmArgs g;
  g.m = c.a.integer(4);
  g.n = c.a.integer(5);
  g.k = c.a.integer(6);
  g.a_row = c.a.integer(7);
  g.a_col = c.a.integer(8);
  g.b_row = c.a.integer(9);
  g.b_col = c.a.integer(10);
  g.ldc = c.a.integer(11);
  g.c = c.a.array<float>(0, -1);
  std::vector<float> sums;
  if (c.a.item(0) == 2) {
    sums.resize(static_cast<size_t>(g.m * g.n));
    g.half = g.c;
    g.half_row = g.ldc;
    g.c = sums.data();
    g.ldc = g.n;
  }
  g.a = c.a.array(1, -1);
  g.b_packed = c.a.given(2) ? c.a.array(2, packed_b_bytes(c, g.k, g.n)) : nullptr;
  g.b = c.a.array(3, -1);
  g.dtype = DType(c.dtype);
  c.k.gemm(g);
  return ran(true);
}

// c, a, b, m, n, k, a_row, a_col, b_row, b_col, ldc.
nb::object call_gemm_generic(Call& c) {
  int64_t v[8];
  for (int i = 0; i < 8; ++i) v[i] = c.a.integer(3 + i);
  c.k.gemm_generic(c.a.array(0, -1), c.a.array(1, -1), c.a.array(2, -1), v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], DType(c.dtype));
  return ran(true);
}

struct Entry {
  const char* table;
  nb::object (*call)(Call&);
};
constexpr Entry kEntries[] = {
    {"unary", call_unary},
    {"cast", call_cast},
    {"binary", call_binary},
    {"binary_vs", call_binary_vs},
    {"binary_sv", call_binary_sv},
    {"select", call_select},
    {"reduce_row", call_reduce_row},
    {"reduce_col", call_reduce_col},
    {"stats", call_stats},
    {"check", call_check},
    {"copy_in", call_copy_in},
    {"copy_out", call_copy_out},
    {"fill", call_fill},
    {"random", call_random},
    {"packed_b_bytes", call_packed_b_bytes},
    {"pack_b", call_pack_b},
    {"gemm", call_gemm},
    {"gemm_generic", call_gemm_generic},
};

nb::object selftest_kernel(const char* level, const char* table, int op, int dtype, nb::args args) {
  const Kernels* k = kernels_at(level);
  if (!k) throw nb::value_error((std::string("no SIMD level \"") + level + "\" here").c_str());
  if (op < 0 || op >= kOps || dtype < 0 || dtype >= kDTypes) throw nb::value_error("opcode or dtype code out of range");
  Arguments arguments(args);
  Call call{*k, op, dtype, item_size(DType(dtype)), arguments};
  for (const Entry& entry : kEntries)
    if (std::strcmp(entry.table, table) == 0) return entry.call(call);
  throw nb::value_error((std::string("no kernel table \"") + table + "\"").c_str());
}

nb::list simd_levels() {
  nb::list levels;
  for (const char* name : {"baseline", "avx2", "avx512"})
    if (kernels_at(name)) levels.append(name);
  return levels;
}

}  // namespace

void bind_selftest(nb::module_& m) {
  m.def("selftest_kernel", &selftest_kernel, nb::arg("level"), nb::arg("table"), nb::arg("op"), nb::arg("dtype"), nb::arg("args"),
        "Runs one kernel of one SIMD level on contiguous NumPy arrays, for tests. False (statistics and checks: None) where the table has no "
        "such kernel. Strided operands (copies, matrix products) are not checked for size.");
  m.def("simd_levels", &simd_levels, "The SIMD levels of this build that this processor has.");
}

}  // namespace dvm
