#include "product.h"

#include <algorithm>

#include "encode.h"
#include "pool.h"

namespace dvm {
namespace {

constexpr int64_t kPackedByTile = 5 << 18;  // bytes: what a tile packs of B stays in the second-level cache

// Matrix number `number` of B: its first element and strides.
const float* matrix_of_b(const Run& run, const Product& p, int64_t number, int64_t* row_stride, int64_t* col_stride) {
  if (p.b.scratch >= 0) {
    *row_stride = p.n;
    *col_stride = 1;
    return reinterpret_cast<const float*>(run.workspace(p.b.scratch)) + number * p.k * p.n;
  }
  *row_stride = p.b.row;
  *col_stride = p.b.col;
  const auto* from = static_cast<const float*>(run.base[p.b.slot]);
  for (auto axis = p.axes.rbegin(); axis != p.axes.rend(); ++axis) {
    if (!axis->b_matrix) continue;
    from += number % axis->extent * axis->b;
    number /= axis->extent;
  }
  return from;
}

int64_t line_bytes(const Product& p) { return (p.k * item_size(p.dtype) + 127) / 128 * 128; }

// B is one column: each element is the product of two vectors, summed as a row is. A panel of 32 columns would be 31 of zeros.
void multiply_column(Core& c, const Product& p, int64_t b_matrix, const float* a, int64_t a_row, int64_t a_col, int64_t rows, float* dst) {
  constexpr int kItem = sizeof(float);
  uint8_t* line = c.ub + p.ub;
  auto* b = reinterpret_cast<float*>(line + line_bytes(p));
  auto* products = reinterpret_cast<float*>(line + 2 * line_bytes(p));
  int64_t row_stride, col_stride;
  const float* from = matrix_of_b(c.run, p, b_matrix, &row_stride, &col_stride);
  c.run.k.copy_in(b, from, 1, p.k, 0, row_stride * kItem, kItem);
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = a + r * a_row;
    if (a_col != 1) {
      c.run.k.copy_in(line, row, 1, p.k, 0, a_col * kItem, kItem);
      row = reinterpret_cast<const float*>(line);
    }
    c.run.k.binary[int(Op::kMUL)][int(DType::kF32)](products, row, b, p.k);
    c.run.k.reduce_row[int(Op::kSUM)][int(DType::kF32)](dst + r, products, 1, p.k);
  }
}

// Halves: one side of a product as contiguous float32 matrices of rows x cols.
void widen_side(const Run& run, const Product& p, const Product::Side& side, int64_t rows, int64_t cols, int64_t Product::BatchAxis::* stride,
                int64_t Product::BatchAxis::* matrix) {
  const DType from = run.area.slots[side.slot].dtype;
  const int item = item_size(from);
  auto* out = reinterpret_cast<float*>(run.workspace(side.scratch));
  const Unary cast = run.k.cast[int(from)][int(DType::kF32)];
  parallel_for(
      side.matrices * rows,
      [&](int64_t unit, int) {
        int64_t matrix_number = unit / rows, offset = unit % rows * side.row;
        for (auto axis = p.axes.rbegin(); axis != p.axes.rend(); ++axis) {
          if (!((*axis).*matrix)) continue;
          offset += matrix_number % axis->extent * ((*axis).*stride);
          matrix_number /= axis->extent;
        }
        const auto* src = static_cast<const uint8_t*>(run.base[side.slot]) + offset * item;
        if (side.col != 1) {
          void* line = thread_scratch(cols * item);
          run.k.copy_in(line, src, 1, cols, 0, side.col * item, item);
          src = static_cast<const uint8_t*>(line);
        }
        cast(out + unit * cols, src, cols);
      },
      side.matrices * rows * cols / 4 + 1);
}

}  // namespace

Product make_product(const ProgramCode& code, const Resolved& resolved, int i) {
  const Instr& in = code.instrs[static_cast<size_t>(i)];
  const Dims &a = shape_of(code, in.operands[0]), &b = shape_of(code, in.operands[1]);
  const Dims &sa = resolved.access[in.operands[0]].strides, &sb = resolved.access[in.operands[1]].strides;
  const bool ta = in.attrs[0], tb = in.attrs[1];
  Product p;
  p.dtype = compute_dtype(in.dtype);
  p.m = in.shape[in.shape.rank - 2];
  p.n = in.shape[in.shape.rank - 1];
  p.k = a[a.rank - (ta ? 2 : 1)];
  p.a.row = sa[a.rank - (ta ? 1 : 2)];
  p.a.col = sa[a.rank - (ta ? 2 : 1)];
  p.b.row = sb[b.rank - (tb ? 1 : 2)];
  p.b.col = sb[b.rank - (tb ? 2 : 1)];
  const auto outer = [](Dims d) {
    d.rank -= 2;
    return d;
  };
  const Dims batch = outer(in.shape), batch_a = broadcast_strides(outer(a), outer(sa), batch), batch_b = broadcast_strides(outer(b), outer(sb), batch);
  for (int x = batch.rank - 1; x >= 0; --x) {
    const int64_t extent = batch[x];
    if (extent == 1) continue;
    // A weight used by all batches, whose rows of A go on regularly: more rows of one product.
    if (p.axes.empty() && batch_b[x] == 0 && batch_a[x] == p.m * p.a.row) {
      p.m *= extent;
      continue;
    }
    p.axes.push_back({extent, batch_a[x], batch_b[x], batch_a[x] ? p.a.matrices : 0, batch_b[x] ? p.b.matrices : 0});
    p.batches *= extent;
    if (batch_a[x]) p.a.matrices *= extent;
    if (batch_b[x]) p.b.matrices *= extent;
  }
  std::reverse(p.axes.begin(), p.axes.end());
  return p;
}

int64_t product_ub_bytes(const Product& p, const Geometry& g) {
  if (p.dtype != DType::kF32) return 0;
  if (p.n == 1) return 3 * line_bytes(p);
  if (p.batches != p.b.matrices || (g.rows != g.tile_rows && g.tile_rows % p.m != 0)) return 0;
  const auto bytes = static_cast<int64_t>(kernels().packed_b_bytes(p.k, p.chained() ? p.n : g.tile_cols));
  return bytes <= kPackedByTile ? bytes : 0;
}

void prepare_product(const Run& run, const Product& p) {
  if (p.a.scratch >= 0) widen_side(run, p, p.a, p.m, p.k, &Product::BatchAxis::a, &Product::BatchAxis::a_matrix);
  if (p.b.scratch >= 0) widen_side(run, p, p.b, p.k, p.n, &Product::BatchAxis::b, &Product::BatchAxis::b_matrix);
  if (p.packed < 0) return;
  constexpr int64_t kPanels = 4 * 32;  // columns packed by one unit
  const int64_t pieces = (p.n + kPanels - 1) / kPanels;
  parallel_for(
      p.b.matrices * pieces,
      [&](int64_t unit, int) {
        const int64_t matrix_number = unit / pieces, col = unit % pieces * kPanels;
        int64_t row_stride, col_stride;
        const float* src = matrix_of_b(run, p, matrix_number, &row_stride, &col_stride);
        auto* dst = reinterpret_cast<float*>(static_cast<uint8_t*>(run.io.workspace) + p.packed + matrix_number * p.packed_stride) + col * p.k;
        run.k.pack_b(dst, src + col * col_stride, row_stride, col_stride, p.k, std::min(kPanels, p.n - col));
      },
      p.b.matrices * p.k * p.n / 4 + 1);
}

// Rows of the product, batch after batch.
void do_matmul(Core& c, const uint64_t* w) {
  const Product& p = c.run.area.products[operand_a(w[1])];
  const int item = item_size(p.dtype);
  const bool in_memory = head_dst(*w) & kGlobal, chained = p.chained();
  const int64_t col = chained ? 0 : c.col, cols = chained ? p.n : c.cols;
  const int64_t ldc = chained ? p.n : in_memory ? c.run.area.space.cols : c.cols;
  const auto* tile = chained ? static_cast<const uint8_t*>(c.pointer(operand_b(w[1]))) : nullptr;
  auto* out = static_cast<uint8_t*>(c.pointer(head_dst(*w)));
  auto* dst = p.wide >= 0 ? c.ub + p.wide : out;
  for (int64_t r = c.row; r < c.row + c.rows;) {
    int64_t batch = r / p.m, in_batch = r % p.m, a = 0, b = 0, a_matrix = 0, b_matrix = 0;
    const int64_t some = std::min(p.m - in_batch, c.row + c.rows - r);
    for (auto axis = p.axes.rbegin(); axis != p.axes.rend(); ++axis) {
      const int64_t digit = batch % axis->extent;
      batch /= axis->extent;
      a += digit * axis->a;
      b += digit * axis->b;
      a_matrix += digit * axis->a_matrix;
      b_matrix += digit * axis->b_matrix;
    }
    const uint8_t* pa;
    int64_t a_row = p.a.row, a_col = p.a.col;
    if (chained) {
      pa = tile + (r - c.row) * c.cols * item;
      a_row = c.cols;
      a_col = 1;
    } else {
      pa = static_cast<const uint8_t*>(c.run.base[p.a.slot]) + a * item;
    }
    if (p.a.scratch >= 0) {
      pa = c.run.workspace(p.a.scratch) + a_matrix * p.m * p.k * item;
      a_row = p.k;
      a_col = 1;
    }
    if (!chained) pa += in_batch * a_row * item;
    if (p.dtype == DType::kF32 && p.n == 1) {
      multiply_column(c, p, b_matrix, reinterpret_cast<const float*>(pa), a_row, a_col, some, reinterpret_cast<float*>(dst));
    } else if (p.dtype == DType::kF32) {
      const float* packed;
      if (p.ub >= 0) {
        auto* own = reinterpret_cast<float*>(c.ub + p.ub);
        int64_t row_stride, col_stride;
        const float* from = matrix_of_b(c.run, p, b_matrix, &row_stride, &col_stride);
        c.run.k.pack_b(own, from + col * col_stride, row_stride, col_stride, p.k, cols);
        packed = own;
      } else {
        packed = reinterpret_cast<const float*>(c.run.workspace(p.packed) + b_matrix * p.packed_stride) + col * p.k;
      }
      c.run.k.gemm({some, cols, p.k, reinterpret_cast<const float*>(pa), a_row, a_col, packed, reinterpret_cast<float*>(dst), ldc});
    } else {
      const auto* pb = static_cast<const uint8_t*>(c.run.base[p.b.slot]) + (b + col * p.b.col) * item;
      c.run.k.gemm_generic(dst, pa, pb, some, cols, p.k, a_row, a_col, p.b.row, p.b.col, ldc, p.dtype);
    }
    dst += some * ldc * item;
    r += some;
  }
  if (p.wide >= 0) c.run.k.cast[int(p.dtype)][int(c.run.area.slots[p.b.slot].dtype)](out, c.ub + p.wide, c.rows * p.n);
}

}  // namespace dvm
