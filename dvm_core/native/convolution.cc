// A convolution is a product with a matrix that is never in memory as a whole: every tile packs blocks of it straight from the image.
#include "convolution.h"

#include <algorithm>

#include "elements.h"
#include "encode.h"
#include "pool.h"

namespace dvm {
namespace {

// A block of the window matrix; its rows are those that a product's sums are split by (see kernels_gemm.h).
constexpr int64_t kRows = 512, kCols = 256;

// Whether axes [first, 4) lie one element after the other.
bool one_run(const Dims& shape, const Dims& strides, int first) {
  int64_t run = 1;
  for (int a = 3; a >= first; --a) {
    if (shape[a] == 1) continue;
    if (strides[a] != run) return false;
    run *= shape[a];
  }
  return true;
}

Convolution::Side make_side(const ProgramCode& code, const Resolved& resolved, int32_t value, DType dtype, bool regular) {
  Convolution::Side side;
  side.shape = shape_of(code, value);
  side.strides = resolved.access[value].strides;
  side.copied = !regular || dtype_of(code, value) != dtype;
  return side;
}

// What one side reads: itself, or its copy.
const uint8_t* data_of(const Run& run, const Convolution::Side& side) {
  return side.copied ? run.workspace(side.scratch) : static_cast<const uint8_t*>(run.base[side.slot]);
}

void copy_side(const Run& run, const Convolution::Side& side, DType dtype) {
  const DType from = run.area.slots[side.slot].dtype;
  const int item = item_size(from);
  const Unary cast = run.k.cast[int(from)][int(dtype)];
  const int64_t rows = side.shape[0] * side.shape[1], cols = side.shape[2] * side.shape[3];
  const ViewAxis row_axes[] = {{side.shape[0], side.strides[0] * item}, {side.shape[1], side.strides[1] * item}};
  const ViewAxis col_axes[] = {{side.shape[2], side.strides[2] * item}, {side.shape[3], side.strides[3] * item}};
  uint8_t* to = run.workspace(side.scratch);
  parallel_for(
      rows,
      [&](int64_t row, int) {
        uint8_t* dst = to + row * cols * item_size(dtype);
        auto* line = from == dtype ? dst : static_cast<uint8_t*>(thread_scratch(cols * item));
        read_axes(line, static_cast<const uint8_t*>(run.base[side.slot]), {row_axes, 2}, {col_axes, 2}, row, 1, 0, cols, item);
        if (from != dtype) cast(dst, line, cols);
      },
      rows * cols / 4 + 1);
}

}  // namespace

Convolution make_convolution(const ProgramCode& code, const Resolved& resolved, int i) {
  namespace at = conv_attrs;
  const Instr& in = code.instrs[static_cast<size_t>(i)];
  const Dims& image = shape_of(code, in.operands[0]);
  Convolution v;
  v.weight = in.op == Op::kCONV2D_WEIGHT;
  v.dtype = compute_dtype(in.dtype);
  v.groups = in.attrs[at::groups];
  // The other two of image, weight and result: here always the shape the result of a CONV2D has, and the weight's.
  const Dims &weight = v.weight ? in.shape : shape_of(code, in.operands[1]), &out = v.weight ? shape_of(code, in.operands[1]) : in.shape;
  const Dims& a_shape = shape_of(code, in.operands[1]);
  const int32_t a_value = in.operands[1];
  v.a = make_side(code, resolved, a_value, v.dtype, one_run(a_shape, resolved.access[a_value].strides, v.weight ? 2 : 1));
  v.b = make_side(code, resolved, in.operands[0], v.dtype, true);
  const Dims sa = v.a.copied ? contiguous_strides(v.a.shape) : v.a.strides, sb = v.b.copied ? contiguous_strides(v.b.shape) : v.b.strides;

  const auto axis = [&](int a, size_t k) {
    return WindowAxis{image[a], out[a], weight[a], in.attrs[at::stride + k], in.attrs[at::before + k], in.attrs[at::dilation + k], in.attrs[at::gap + k]};
  };
  v.window = {axis(2, 0), axis(3, 1), sb[1], sb[2], sb[3]};
  const int64_t taps = weight[1] * weight[2] * weight[3], outputs = out[2] * out[3];
  v.m = out[1] / v.groups;
  v.n = v.weight ? taps : outputs;
  v.k = v.weight ? outputs : taps;
  v.images = v.weight ? image[0] : 1;
  v.batches = v.weight ? v.groups : image[0] * v.groups;
  v.b_image = sb[0];
  v.b_group = sb[1] * weight[1];
  v.a_row = sa[v.weight ? 1 : 0];
  v.a_image = v.weight ? sa[0] : 0;
  v.a_group = v.a_row * v.m;
  return v;
}

int64_t convolution_ub_bytes(const Convolution& v, const Geometry& g) {
  const int64_t rows = std::min(v.k, kRows), cols = std::min(g.tile_cols, kCols);
  return v.dtype == DType::kF32 ? static_cast<int64_t>(kernels().packed_b_bytes(rows, cols, v.dtype)) : rows * cols * item_size(v.dtype);
}

void prepare_convolution(const Run& run, const Convolution& v) {
  for (const Convolution::Side* side : {&v.a, &v.b})
    if (side->copied) copy_side(run, *side, v.dtype);
}

// Rows of the result, batch after batch; of each, block after block of the window matrix.
void do_convolution(Core& c, const uint64_t* w) {
  const Convolution& v = c.run.area.convolutions[operand_a(w[1])];
  const int item = item_size(v.dtype);
  const int64_t ldc = head_dst(*w) & kGlobal ? c.run.area.space.cols : c.cols;
  auto* dst = static_cast<uint8_t*>(c.pointer(head_dst(*w)));
  const uint8_t *a = data_of(c.run, v.a), *b = data_of(c.run, v.b);
  void* packed = c.ub + v.ub;
  const PackWindow pack = c.run.k.pack_window[int(v.dtype)];
  for (int64_t r = c.row; r < c.row + c.rows;) {
    const int64_t batch = r / v.m, in_batch = r % v.m, some = std::min(v.m - in_batch, c.row + c.rows - r), group = batch % v.groups;
    const int64_t first_image = batch / v.groups;
    for (int64_t j = 0; j < c.cols; j += kCols) {
      const int64_t cols = std::min(kCols, c.cols - j);
      for (int64_t image = first_image; image < first_image + v.images; ++image) {
        const uint8_t* pa = a + (image * v.a_image + group * v.a_group + in_batch * v.a_row) * item;
        const uint8_t* pb = b + (image * v.b_image + group * v.b_group) * item;
        for (int64_t k = 0; k < v.k; k += kRows) {
          const int64_t rows = std::min(kRows, v.k - k);
          const bool add = image > first_image || k > 0;
          pack(packed, pb, v.window, v.weight, k, rows, c.col + j, cols);
          uint8_t* to = dst + j * item;
          const uint8_t* from = pa + k * item;
          if (v.dtype == DType::kF32)
            c.run.k.gemm({some, cols, rows, reinterpret_cast<const float*>(from), v.a_row, 1, static_cast<const float*>(packed), reinterpret_cast<float*>(to),
                          ldc, add});
          else
            c.run.k.gemm_rows(reinterpret_cast<double*>(to), ldc, reinterpret_cast<const double*>(from), v.a_row, 1, static_cast<const double*>(packed), some,
                              cols, rows, add);
        }
      }
    }
    dst += some * ldc * item;
    r += some;
  }
}

}  // namespace dvm
