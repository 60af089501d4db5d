// A convolution is a product with a matrix that is never in memory as a whole. Where planes fit the cache, a tile copies the rows of the image
// it sees, padded, once for all taps: the matrix' rows are those rows, shifted. Else it packs blocks of the matrix.
#include "convolution.h"

#include <algorithm>
#include <array>

#include "elements.h"
#include "encode.h"
#include "pool.h"

namespace dvm {
namespace {

// A block of the window matrix; its rows are those that a product's sums are split by, or the bits would differ from MATMUL's.
constexpr int64_t kRows = kSumBlock, kCols = 256;

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

namespace {

// Distinct values of tap * dilation modulo stride.
std::vector<int32_t> phases(const WindowAxis& a) {
  std::vector<int32_t> found;
  for (int64_t t = 0; t < std::min(a.taps, a.stride); ++t) {
    const auto phase = static_cast<int32_t>(t * a.dilation % a.stride);
    if (std::find(found.begin(), found.end(), phase) == found.end()) found.push_back(phase);
  }
  return found;
}

int64_t shift(const WindowAxis& a) { return (a.taps - 1) * a.dilation / a.stride; }

// Channels that a block of the matrix' rows may touch.
int64_t block_channels(const Convolution& v) {
  const int64_t taps = v.window.y.taps * v.window.x.taps;
  return std::min(v.k / taps, (kRows + taps - 2) / taps + 1);
}

int64_t planes_of(const Convolution& v) { return block_channels(v) * static_cast<int64_t>(v.phases_y.size() * v.phases_x.size()) * v.plane_rows * v.pitch; }

}  // namespace

void choose_way(Convolution* v, const Geometry& g) {
  const WindowAxis &y = v->window.y, &x = v->window.x;
  if (v->weight || v->dtype != DType::kF32) return;
  const auto still = [](const WindowAxis& a) { return a.taps == 1 && a.stride == 1 && a.before == 0 && a.gap == 1 && a.in == a.out; };
  if (still(y) && still(x) && v->window.col == 1 && (v->window.row == x.in || y.in == 1)) {
    v->way = Convolution::kPlain;
    return;
  }
  constexpr int64_t kMostRows = 1 << 16, kMostElements = 3 << 16, kMostShift = 1 << 12;
  v->pitch = x.out + shift(x);
  const bool whole = g.tile_cols % x.out == 0;
  v->plane_rows = (whole ? g.tile_cols / x.out : std::min(y.out, (g.tile_cols + x.out - 2) / x.out + 1)) + shift(y);
  if (v->k > kMostRows || shift(x) > kMostShift || shift(y) > kMostShift || v->pitch > kMostElements || v->plane_rows > kMostElements) return;
  v->phases_y = phases(y);
  v->phases_x = phases(x);
  if (planes_of(*v) > kMostElements) return;
  v->way = Convolution::kPlanes;
  v->offsets.resize(static_cast<size_t>(v->k));
  const int64_t taps = y.taps * x.taps, plane = v->plane_rows * v->pitch;
  const auto place = [](const std::vector<int32_t>& all, int64_t phase) { return std::find(all.begin(), all.end(), phase) - all.begin(); };
  for (int64_t k = 0; k < v->k; ++k) {
    const int64_t channel = k / taps - k / kRows * kRows / taps, dy = k % taps / x.taps * y.dilation, dx = k % x.taps * x.dilation;
    const int64_t phase = place(v->phases_y, dy % y.stride) * static_cast<int64_t>(v->phases_x.size()) + place(v->phases_x, dx % x.stride);
    const int64_t number = channel * static_cast<int64_t>(v->phases_y.size() * v->phases_x.size()) + phase;
    v->offsets[static_cast<size_t>(k)] = static_cast<int32_t>(number * plane + dy / y.stride * v->pitch + dx / x.stride);
  }
}

int64_t convolution_ub_bytes(const Convolution& v, const Geometry& g) {
  if (v.way == Convolution::kPlain) return 0;
  if (v.way == Convolution::kPlanes) return planes_of(v) * item_size(v.dtype);
  const int64_t rows = std::min(v.k, kRows), cols = std::min(g.tile_cols, kCols);
  return v.dtype == DType::kF32 ? static_cast<int64_t>(kernels().packed_b_bytes(rows, cols, DType::kF32)) : rows * cols * item_size(v.dtype);
}

int64_t convolution_wide_bytes(const Convolution& v, const Geometry& g) {
  if (v.way != Convolution::kPlanes || v.pitch == v.window.x.out) return 0;
  return std::min(g.tile_rows, v.m) * (v.plane_rows - shift(v.window.y)) * v.pitch * item_size(v.dtype);
}

void prepare_convolution(const Run& run, const Convolution& v) {
  for (const Convolution::Side* side : {&v.a, &v.b})
    if (side->copied) copy_side(run, *side, v.dtype);
}

namespace {

// Some rows of one batch, in columns c.col .. c.col + c.cols: of weight rows a, seen in image b.
struct Piece {
  int64_t rows;
  const uint8_t *a, *b;
  uint8_t* to;
  int64_t ldc;
};

void multiply_plain(Core& c, const Convolution& v, const Piece& p) {
  const auto* b = reinterpret_cast<const float*>(p.b) + c.col;
  c.run.k.gemm({p.rows, c.cols, v.k, p.a, v.a_row, 1, nullptr, reinterpret_cast<float*>(p.to), p.ldc, false, b, v.window.channel, 1});
}

void multiply_planes(Core& c, const Convolution& v, const Piece& p) {
  const Window& w = v.window;
  const int64_t first = c.col / w.x.out, last = (c.col + c.cols - 1) / w.x.out, start = c.col - first * w.x.out;
  const int64_t n = (last - first) * v.pitch + c.col + c.cols - last * w.x.out - start, taps = w.y.taps * w.x.taps;
  auto* planes = reinterpret_cast<float*>(c.ub + v.ub);
  auto* to = reinterpret_cast<float*>(v.wide >= 0 ? c.ub + v.wide : p.to);
  const int64_t ldc = v.wide >= 0 ? n : p.ldc;
  for (int64_t k = 0; k < v.k; k += kRows) {
    const int64_t rows = std::min(kRows, v.k - k), channel = k / taps;
    c.run.k.plane_rows(planes, reinterpret_cast<const float*>(p.b), w,
                       {channel, (k + rows - 1) / taps + 1 - channel, first, last - first + 1 + shift(w.y), v.pitch, v.plane_rows * v.pitch, v.phases_y.data(),
                        v.phases_x.data(), static_cast<int64_t>(v.phases_y.size()), static_cast<int64_t>(v.phases_x.size())});
    c.run.k.offset_product({p.rows, n, rows, reinterpret_cast<const float*>(p.a) + k, v.a_row, planes + start, v.offsets.data() + k, to, ldc, k > 0});
  }
  if (v.wide < 0) return;
  // The result has no columns between its rows.
  for (int64_t r = 0; r < p.rows; ++r) {
    const float* from = to + r * n;
    auto* out = reinterpret_cast<float*>(p.to) + r * p.ldc;
    for (int64_t y = first, at = start; y <= last; ++y, at = 0) {
      const int64_t count = std::min(w.x.out, c.col + c.cols - y * w.x.out) - at;
      std::copy_n(from, count, out);
      from += v.pitch - at;
      out += count;
    }
  }
}

// The same over several images: the gradient of the weight.
void multiply_packed(Core& c, const Convolution& v, const Piece& p) {
  const int item = item_size(v.dtype);
  void* packed = c.ub + v.ub;
  const PackWindow pack = c.run.k.pack_window[int(v.dtype)];
  for (int64_t j = 0; j < c.cols; j += kCols) {
    const int64_t cols = std::min(kCols, c.cols - j);
    uint8_t* to = p.to + j * item;
    for (int64_t image = 0; image < v.images; ++image)
      for (int64_t k = 0; k < v.k; k += kRows) {
        const int64_t rows = std::min(kRows, v.k - k);
        const bool add = image > 0 || k > 0;
        const uint8_t* from = p.a + (image * v.a_image + k) * item;
        pack(packed, p.b + image * v.b_image * item, v.window, v.weight, k, rows, c.col + j, cols);
        if (v.dtype == DType::kF32) c.run.k.gemm({p.rows, cols, rows, from, v.a_row, 1, packed, reinterpret_cast<float*>(to), p.ldc, add});
        else
          c.run.k.gemm_rows(reinterpret_cast<double*>(to), p.ldc, reinterpret_cast<const double*>(from), v.a_row, 1, static_cast<const double*>(packed), p.rows,
                            cols, rows, add);
      }
  }
}

}  // namespace

// Rows of the result, batch after batch.
void do_convolution(Core& c, const uint64_t* w) {
  constexpr auto kMultiply = std::to_array({multiply_packed, multiply_planes, multiply_plain});
  const Convolution& v = c.run.area.convolutions[operand_a(w[1])];
  const int item = item_size(v.dtype);
  const int64_t ldc = is_global(head_dst(*w)) ? c.run.area.space.cols : c.cols;
  auto* dst = static_cast<uint8_t*>(c.pointer(head_dst(*w)));
  const uint8_t *a = data_of(c.run, v.a), *b = data_of(c.run, v.b);
  for (int64_t r = c.row; r < c.row + c.rows;) {
    const int64_t batch = r / v.m, in_batch = r % v.m, some = std::min(v.m - in_batch, c.row + c.rows - r);
    const int64_t group = batch % v.groups, image = batch / v.groups;
    kMultiply[v.way](
        c, v, {some, a + (image * v.a_image + group * v.a_group + in_batch * v.a_row) * item, b + (image * v.b_image + group * v.b_group) * item, dst, ldc});
    dst += some * ldc * item;
    r += some;
  }
}

}  // namespace dvm
