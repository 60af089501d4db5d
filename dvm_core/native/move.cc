// Move areas: instructions that carry elements to computed places. Each runs alone, from any strides to contiguous memory.
#include <algorithm>
#include <cstring>
#include <vector>

#include "elements.h"
#include "interp.h"
#include "optable.h"
#include "pool.h"

namespace dvm {
namespace {

constexpr int64_t kPieces = 24;

// An operand in memory, strides in elements.
struct Memory {
  uint8_t* data;
  DType dtype;
  Dims shape, strides;
};

struct Move {
  const Instr& in;
  std::vector<Memory> operands;
  uint8_t* dst;
  const Kernels& k;
  int item;  // of the result
};

// fn(from, to) over pieces of 0..n-1; `bytes` all of them move.
template <class F>
void in_pieces(int64_t n, int64_t bytes, F&& fn) {
  const int64_t pieces = std::clamp<int64_t>(bytes / 65536, 1, std::min(n, kPieces));
  if (pieces <= 1) return fn(int64_t{0}, n);
  parallel_for(pieces, [&](int64_t p, int) { fn(n * p / pieces, n * (p + 1) / pieces); }, bytes / 8);
}

int64_t product(const Dims& d, int from, int to) {
  int64_t n = 1;
  for (int a = from; a < to; ++a) n *= d[a];
  return n;
}

// Axes [from, to) of an operand in bytes, neighbours that are one run joined.
std::vector<ViewAxis> axes_of(const Memory& m, int from, int to) {
  std::vector<ViewAxis> axes;
  const int64_t item = item_size(m.dtype);
  for (int a = from; a < to; ++a) {
    if (m.shape[a] == 1) continue;
    const int64_t stride = m.strides[a] * item;
    if (!axes.empty() && axes.back().stride == stride * m.shape[a]) {
      axes.back().extent *= m.shape[a];
      axes.back().stride = stride;
    } else {
      axes.push_back({m.shape[a], stride});
    }
  }
  return axes;
}

// Bytes to position `index` of row-major axes.
int64_t offset_of(const std::vector<ViewAxis>& axes, int64_t index) {
  int64_t offset = 0;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    offset += index % axis->extent * axis->stride;
    index /= axis->extent;
  }
  return offset;
}

// An operand read as rows of `cols` elements: the axes before `split` count rows.
class Rows {
 public:
  Rows(const Memory& m, int split)
      : data_(m.data),
        item_(item_size(m.dtype)),
        rows_(axes_of(m, 0, split)),
        cols_(axes_of(m, split, m.shape.rank)),
        width(product(m.shape, split, m.shape.rank)) {}
  void read(uint8_t* dst, int64_t row, int64_t count) const {
    read_axes(dst, data_, {rows_.data(), static_cast<int>(rows_.size())}, {cols_.data(), static_cast<int>(cols_.size())}, row, count, 0, width, item_);
  }

 private:
  const uint8_t* data_;
  int item_;
  std::vector<ViewAxis> rows_, cols_;

 public:
  const int64_t width;
};

// The operand itself if it is contiguous, else a copy in `copy`.
const uint8_t* contiguous(const Memory& m, std::vector<uint8_t>* copy) {
  const int64_t n = m.shape.size(), item = item_size(m.dtype);
  if (n == 0 || is_contiguous(m.shape, m.strides)) return m.data;
  copy->resize(static_cast<size_t>(n * item));
  const Rows rows(m, m.shape.rank - 1);
  in_pieces(n / rows.width, n * item, [&](int64_t from, int64_t to) { rows.read(copy->data() + from * rows.width * item, from, to - from); });
  return copy->data();
}

// The index values, negative ones counted from the end.
std::vector<int64_t> indices(const Move& m, const Memory& index, int64_t extent) {
  std::vector<uint8_t> copy;
  const uint8_t* data = contiguous(index, &copy);
  std::vector<int64_t> out(static_cast<size_t>(index.shape.size()));
  m.k.cast[int(index.dtype)][int(DType::kI64)](out.data(), data, static_cast<int64_t>(out.size()));
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t given = out[i];
    if (given < 0) out[i] += extent;
    if (out[i] < 0 || out[i] >= extent)
      throw UserError(std::string(op_name(m.in.op)) + ": index " + std::to_string(given) + " (element " + std::to_string(i) + " of the index " +
                          shape_text(index.shape) + ") is out of range for axis " + std::to_string(m.in.attrs[0]) + " of extent " + std::to_string(extent),
                      m.in.place);
  }
  return out;
}

// n items from `src`, `index` steps apart each.
template <class T>
void take_items(uint8_t* dst, const uint8_t* src, const int64_t* index, int64_t n, int64_t step) {
  for (int64_t i = 0; i < n; ++i) std::memcpy(dst + i * int64_t{sizeof(T)}, src + index[i] * step, sizeof(T));
}

void gather(const Move& m) {
  const Memory& a = m.operands[0];
  const int axis = static_cast<int>(m.in.attrs[0]);
  const std::vector<int64_t> index = indices(m, m.operands[1], a.shape[axis]);
  const auto count = static_cast<int64_t>(index.size()), outer = product(a.shape, 0, axis), inner = product(a.shape, axis + 1, a.shape.rank);
  const int64_t extent = a.shape[axis], bytes = inner * m.item, step = a.strides[axis] * m.item;
  const std::vector<ViewAxis> outer_axes = axes_of(a, 0, axis), inner_axes = axes_of(a, axis + 1, a.shape.rank);
  const bool run = inner == 1 || (inner_axes.size() == 1 && inner_axes[0].stride == m.item);
  const Rows slices(a, axis + 1);  // row o * extent + i is one slice
  // Result (o, i) is slice index[i] of outer position o; pieces may begin and end within an o.
  in_pieces(outer * count, outer * count * bytes, [&](int64_t from, int64_t to) {
    uint8_t* dst = m.dst + from * bytes;
    while (from < to) {
      const int64_t o = from / count, first = from % count, n = std::min(count - first, to - from);
      const int64_t* at = index.data() + first;
      const uint8_t* src = a.data + offset_of(outer_axes, o);
      if (!run)
        for (int64_t i = 0; i < n; ++i) slices.read(dst + i * bytes, o * extent + at[i], 1);
      else if (bytes == 4) take_items<uint32_t>(dst, src, at, n, step);
      else if (bytes == 8) take_items<uint64_t>(dst, src, at, n, step);
      else
        for (int64_t i = 0; i < n; ++i) std::memcpy(dst + i * bytes, src + at[i] * step, static_cast<size_t>(bytes));
      dst += n * bytes;
      from += n;
    }
  });
}

// Every target row is written by one worker, which goes through the index in order.
void scatter_add(const Move& m) {
  const Memory& a = m.operands[0];
  const Dims& shape = m.in.shape;
  const int axis = static_cast<int>(m.in.attrs[0]);
  const int64_t extent = shape[axis], outer = product(shape, 0, axis), inner = product(shape, axis + 1, shape.rank);
  const std::vector<int64_t> index = indices(m, m.operands[1], extent);
  const auto count = static_cast<int64_t>(index.size());
  std::vector<uint8_t> copy;
  const uint8_t* src = contiguous(a, &copy);
  const int64_t bytes = inner * m.item;
  // Halves are summed in float32 and rounded once.
  const DType sum = compute_dtype(a.dtype);
  const bool halves = sum != a.dtype;
  const int64_t wide = inner * item_size(sum);
  const Binary add = m.k.binary[int(Op::kADD)][int(sum)];
  const Unary widen = m.k.cast[int(a.dtype)][int(sum)], narrow = m.k.cast[int(sum)][int(a.dtype)];
  const int64_t bands = std::clamp<int64_t>(count * bytes / 65536, 1, std::min<int64_t>(extent, 8));
  const auto band = [&](int64_t unit, int) {
    const int64_t o = unit / bands, low = extent * (unit % bands) / bands, high = extent * (unit % bands + 1) / bands;
    uint8_t* dst = m.dst + (o * extent + low) * bytes;
    std::vector<uint8_t> sums(static_cast<size_t>(halves ? (high - low) * wide : 0)), line(static_cast<size_t>(halves ? wide : 0));
    uint8_t* into = halves ? sums.data() : dst;
    if (!halves) std::memset(dst, 0, static_cast<size_t>((high - low) * wide));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = index[static_cast<size_t>(i)];
      if (at < low || at >= high) continue;
      const uint8_t* from = src + (o * count + i) * bytes;
      if (halves) {
        widen(line.data(), from, inner);
        from = line.data();
      }
      uint8_t* to = into + (at - low) * wide;
      add(to, to, from, inner);
    }
    if (halves) narrow(dst, into, (high - low) * inner);
  };
  parallel_for(outer * bands, band, outer * (count + extent) * bytes / 8 + 1);
}

void concat(const Move& m) {
  const int axis = static_cast<int>(m.in.attrs[0]);
  const int64_t outer = product(m.in.shape, 0, axis), line = product(m.in.shape, axis, m.in.shape.rank) * m.item;
  uint8_t* dst = m.dst;
  for (const Memory& a : m.operands) {
    if (a.shape.size() == 0) continue;
    const Rows rows(a, axis);
    const int64_t width = rows.width * m.item;
    const bool run = is_contiguous(a.shape, a.strides);
    in_pieces(outer, outer * width, [&](int64_t from, int64_t to) {
      if (run) m.k.copy_out(dst + from * line, a.data + from * width, to - from, rows.width, line, m.item, m.item);
      else
        for (int64_t r = from; r < to; ++r) rows.read(dst + r * line, r, 1);
    });
    dst += rows.width * m.item;
  }
}

void unslice(const Move& m) {
  const Memory& a = m.operands[0];
  const int rank = a.shape.rank;
  std::memset(m.dst, 0, static_cast<size_t>(m.in.shape.size() * m.item));
  if (a.shape.size() == 0) return;
  std::vector<uint8_t> copy;
  const uint8_t* src = contiguous(a, &copy);
  const Dims strides = contiguous_strides(m.in.shape);
  uint8_t* dst = m.dst;
  for (int x = 0; x < rank; ++x) dst += m.in.attrs[static_cast<size_t>(2 * x)] * strides[x] * m.item;
  const auto step = [&](int x) { return x < 0 ? 0 : m.in.attrs[static_cast<size_t>(2 * x + 1)] * strides[x] * m.item; };
  // The last two axes in one copy, the others by counting.
  const int64_t cols = rank > 0 ? a.shape[rank - 1] : 1, rows = rank > 1 ? a.shape[rank - 2] : 1, blocks = a.shape.size() / (rows * cols);
  in_pieces(blocks, a.shape.size() * m.item, [&](int64_t from, int64_t to) {
    for (int64_t b = from; b < to; ++b) {
      int64_t offset = 0, left = b;
      for (int x = rank - 3; x >= 0; --x) {
        offset += left % a.shape[x] * step(x);
        left /= a.shape[x];
      }
      m.k.copy_out(dst + offset, src + b * rows * cols * m.item, rows, cols, step(rank - 2), step(rank - 1), m.item);
    }
  });
}

void one_hot(const Move& m) {
  const int64_t depth = m.in.shape[m.in.shape.rank - 1], count = m.in.shape.size() / depth;
  Cell on, off;
  write_scalar(on.bytes, m.in.dtype, m.in.imms.at(0));
  write_scalar(off.bytes, m.in.dtype, m.in.imms.at(1));
  std::vector<uint8_t> copy;
  const uint8_t* data = contiguous(m.operands[0], &copy);
  std::vector<int64_t> index(static_cast<size_t>(count));
  m.k.cast[int(m.operands[0].dtype)][int(DType::kI64)](index.data(), data, count);
  in_pieces(count, count * depth * m.item, [&](int64_t from, int64_t to) {
    m.k.fill(m.dst + from * depth * m.item, off.bytes, (to - from) * depth, m.item);
    for (int64_t i = from; i < to; ++i) {
      const int64_t at = index[static_cast<size_t>(i)];
      if (at >= 0 && at < depth) std::memcpy(m.dst + (i * depth + at) * m.item, on.bytes, static_cast<size_t>(m.item));
    }
  });
}

void iota(const Move& m) {
  const int axis = static_cast<int>(m.in.attrs[0]);
  const int64_t extent = m.in.shape[axis], outer = product(m.in.shape, 0, axis), inner = product(m.in.shape, axis + 1, m.in.shape.rank);
  const auto plane = static_cast<size_t>(extent * inner * m.item);
  for (int64_t i = 0; i < extent; ++i) {
    Cell value;
    Imm number;
    number.i = i;
    number.is_int = true;
    write_scalar(value.bytes, m.in.dtype, number);
    m.k.fill(m.dst + i * inner * m.item, value.bytes, inner, m.item);
  }
  for (int64_t o = 1; o < outer; ++o) std::memcpy(m.dst + static_cast<size_t>(o) * plane, m.dst, plane);
}

void pool(const Move& m) {
  std::vector<uint8_t> copies[2];
  const void* data[2] = {};
  for (size_t o = 0; o < m.operands.size(); ++o) data[o] = contiguous(m.operands[o], &copies[o]);
  run_pool(m.in, data[0], data[1], m.operands.back().shape, m.dst);
}

// A reduction or product over no elements.
void identity(const Move& m) {
  Cell value;
  Imm nan;
  nan.f = __builtin_nan("");
  if (m.in.op == Op::kMEAN) write_scalar(value.bytes, m.in.dtype, nan);
  else write_identity(value.bytes, m.in.dtype, m.in.op);
  m.k.fill(m.dst, value.bytes, m.in.shape.size(), m.item);
}

}  // namespace

void run_move(const AreaCode& area, const ProgramCode& code, void* const* base) {
  const Instr& in = code.instrs[static_cast<size_t>(area.move)];
  Move m{in, {}, static_cast<uint8_t*>(base[area.operands.back()]), kernels(), item_size(in.dtype)};
  for (size_t o = 0; o + 1 < area.operands.size(); ++o) {
    const int32_t value = in.operands[o];
    m.operands.push_back({static_cast<uint8_t*>(base[area.operands[o]]), dtype_of(code, value), shape_of(code, value), area.operand_strides[o]});
  }
  switch (in.op) {
    case Op::kGATHER: return gather(m);
    case Op::kSCATTER_ADD: return scatter_add(m);
    case Op::kCONCAT: return concat(m);
    case Op::kUNSLICE: return unslice(m);
    case Op::kONE_HOT: return one_hot(m);
    case Op::kIOTA: return iota(m);
    case Op::kMAX_POOL2D:
    case Op::kMAX_POOL2D_GRAD:
    case Op::kAVG_POOL2D:
    case Op::kAVG_POOL2D_GRAD: return pool(m);
    default: return identity(m);
  }
}

}  // namespace dvm
