// The element kernels: one table of function pointers per SIMD level, chosen once at start-up (DVM_SIMD=baseline|avx2|avx512 forces one).
// kernels_simd.cc is compiled once per level. A null entry means "this dtype is not supported by this op".
// Bits: elementwise kernels never contract a*b+c; each op rounds to its dtype; reductions have one order that depends on the extent
// alone and is the same at every level. Only without FMA (baseline) do a float32 product or convolution differ: product and sum round apart.
#pragma once
#include <cstddef>
#include <cstdint>

#include "types.h"

namespace dvm {

// Items along k that one sum of a product takes; sums of several blocks are joined in order, through memory. Bits depend on it.
inline constexpr int64_t kSumBlock = 512;

// Columns a long row is reduced by. Kernels, tiles and the joining of partial results agree on it: bits depend on it.
inline constexpr int64_t kReduceBlock = 4096;
// A block of so many columns or more is added in more lanes than a shorter one; beyond that, identities at its end change nothing.
inline constexpr int64_t kReduceWide = 256;

// Statistics of one run of elements; merged with stats_merge. Only finite values count for min, max, mean and m2 (sum of squared
// deviations); histogram is over log2|x| in 32 bins: bin 0 holds |x| < 2^-24, bin 31 holds |x| >= 2^6.
struct Stats {
  int64_t count = 0, finite = 0, zero = 0, nan = 0, pos_inf = 0, neg_inf = 0;
  double min = 0, max = 0, mean = 0, m2 = 0, abs_mean = 0;  // of finite elements; m2: sum of squared deviations
  uint64_t histogram[32] = {};
  double deviation() const { return finite ? __builtin_sqrt((m2 > 0 ? m2 : 0) / double(finite)) : 0; }  // of the population
};
void stats_merge(Stats* into, const Stats& from);

// c[m,n] (row stride ldc, contiguous columns) = a[m,k] @ b[k,n], each element one sequential fused float32 sum over k in blocks of kSumBlock.
// a and b are read through element strides; or b was packed by pack_b.
struct GemmArgs {
  int64_t m, n, k;
  const void* a;
  int64_t a_row, a_col;
  const void* b_packed;  // null: b as it lies
  float* c;              // may be null if `half` is set and one block is all
  int64_t ldc;
  bool add = false;      // c holds the sum over earlier k
  const void* b = nullptr;
  int64_t b_row = 0, b_col = 0;
  DType dtype = DType::kF32;  // of a, b and `half`: float32 or a half
  void* half = nullptr;       // set: the result, rounded, goes there
  int64_t half_row = 0;
};

// A window that moves over planes. Along an axis, tap t of output o lies at position o * stride - before + t * dilation, and input i at
// position i * gap; everything else is 0 (in a maximum: nothing).
struct WindowAxis {
  int64_t in, out, taps, stride, before, dilation, gap;
};
// Planes [channel, y, x] seen through it: the window matrix has a row for every (channel, tap y, tap x), a column for every output (y, x).
struct Window {
  WindowAxis y, x;
  int64_t channel, row, col;  // strides in elements
};
// Rows of planes as outputs see them: for every channel, phase y and phase x (tap * dilation modulo stride) a plane of `rows` x `pitch`, whose
// element (i, j) is at position (first_row + i) * stride + phase - before along y, j * stride + phase - before along x.
struct PlaneRows {
  int64_t channel, channels, first_row, rows, pitch;
  int64_t plane;                       // elements from one plane to the next
  const int32_t *phases_y, *phases_x;
  int64_t count_y, count_x;
};
// c[m,n] (+)= a[m,k] @ b, k <= kSumBlock: row i of b begins at b + offsets[i]; a has contiguous rows.
struct OffsetProduct {
  int64_t m, n, k;
  const float* a;
  int64_t a_row;
  const float* b;
  const int32_t* offsets;
  float* c;
  int64_t ldc;
  bool add;
};
// Means over windows: the positions low .. high - 1 of an axis count; divisor 0: as many as counted.
struct MeanWindow {
  Window window;
  int64_t y_low, y_high, x_low, x_high, divisor;
};

using Unary = void (*)(void* dst, const void* a, int64_t n);
using Binary = void (*)(void* dst, const void* a, const void* b, int64_t n);
// `s` holds one value per row, applied to `cols` elements of that row (rows = 1: a plain scalar).
using BinaryRow = void (*)(void* dst, const void* a, const void* s, int64_t rows, int64_t cols);
using Select = void (*)(void* dst, const uint8_t* cond, const void* a, const void* b, int64_t n);
// dst[r] = reduce(src[r, :]): blocks of kReduceBlock columns, each 16 lanes then a fixed tree, blocks joined in order.
using ReduceRow = void (*)(void* dst, const void* src, int64_t rows, int64_t cols);
// acc[j] = acc[j] (op) src[i, j] for i = 0, 1, 2 ... in that order. The caller has put the identity (or an earlier partial) in acc.
using ReduceCol = void (*)(void* acc, const void* src, int64_t rows, int64_t cols);
using StatsOf = void (*)(Stats* out, const void* src, int64_t n);
// Elements first .. first + n - 1 of the sequence that seed and offset name.
using Random = void (*)(void* dst, uint64_t seed, uint64_t offset, int64_t first, int64_t n);
// Bit 0: a NaN among the n elements; bit 1: an infinity.
using CheckOf = int (*)(const void* src, int64_t n);
// rows x cols elements of `item` bytes from any strides (bytes, 0 = broadcast) to a contiguous destination, and back.
using CopyIn = void (*)(void* dst, const void* src, int64_t rows, int64_t cols, int64_t row_stride, int64_t col_stride, int item);
using CopyOut = void (*)(void* dst, const void* src, int64_t rows, int64_t cols, int64_t row_stride, int64_t col_stride, int item);

// rows x cols of the window matrix (or of its transpose) from (row, col) on: float32 as pack_b packs them, float64 row by row.
using PackWindow = void (*)(void* dst, const void* src, const Window& w, bool transposed, int64_t row, int64_t rows, int64_t col, int64_t cols);
// One contiguous plane; the gradients add to `dst`.
using PoolMax = void (*)(void* dst, const void* src, const Window& w);
using PoolMaxOf = void (*)(void* dst, const void* src, const void* other, const Window& w);
using PoolMean = void (*)(void* dst, const void* src, const MeanWindow& w);

struct Kernels {
  const char* level;                               // "baseline", "avx2", "avx512"
  Unary unary[kOps][kDTypes];                      // by opcode and operand dtype
  Unary cast[kDTypes][kDTypes];                    // [from][to]
  Binary binary[kOps][kDTypes];                    // by opcode and operand dtype; comparisons write bool bytes
  BinaryRow binary_vs[kOps][kDTypes];              // tensor (op) scalar of the row
  BinaryRow binary_sv[kOps][kDTypes];              // scalar of the row (op) tensor
  Select select[kDTypes];
  ReduceRow reduce_row[kOps][kDTypes];             // SUM MAX MIN PROD (MEAN = SUM, then DIV by the caller)
  ReduceCol reduce_col[kOps][kDTypes];
  StatsOf stats[kDTypes];
  CheckOf check[kDTypes];
  Random random[kDTypes];
  CopyIn copy_in;
  CopyOut copy_out;
  void (*fill)(void* dst, const void* value, int64_t n, int item);
  size_t (*packed_b_bytes)(int64_t k, int64_t n, DType dtype);
  void (*pack_b)(void* dst, const void* b, int64_t b_row, int64_t b_col, int64_t k, int64_t n, DType dtype);
  void (*gemm)(const GemmArgs&);
  // c[m,n] = a @ b for F64, the integers and bool (and F32) from any element strides; c has contiguous rows. For dtypes without packed kernels.
  void (*gemm_generic)(void* c, const void* a, const void* b, int64_t m, int64_t n, int64_t k, int64_t a_row, int64_t a_col, int64_t b_row, int64_t b_col,
                       int64_t ldc, DType dtype);
  // c (+)= a @ b in float64; b has contiguous rows.
  void (*gemm_rows)(double* c, int64_t ldc, const double* a, int64_t a_row, int64_t a_col, const double* b, int64_t m, int64_t n, int64_t k, bool add);
  PackWindow pack_window[kDTypes];
  void (*plane_rows)(float* dst, const float* src, const Window& w, const PlaneRows& p);
  void (*offset_product)(const OffsetProduct& p);
  PoolMax pool_max[kDTypes];
  PoolMaxOf pool_max_pick[kDTypes], pool_max_back[kDTypes];
  PoolMean pool_mean[kDTypes], pool_mean_back[kDTypes];
};

// The table in use; thread-safe, set on first use.
const Kernels& kernels();
// A given level's table, or null where this build or processor does not have it (tests force each).
const Kernels* kernels_at(const char* level);

}  // namespace dvm
