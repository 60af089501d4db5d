// Move areas: instructions that carry elements to computed places. Each runs alone, from any strides to contiguous memory.
#pragma once
#include <algorithm>
#include <vector>

#include "elements.h"
#include "pool.h"

namespace dvm {

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

inline int64_t product(const Dims& d, int from, int to) {
  int64_t n = 1;
  for (int a = from; a < to; ++a) n *= d[a];
  return n;
}

// Axes [from, to) of an operand in bytes, neighbours that are one run joined.
inline std::vector<ViewAxis> axes_of(const Memory& m, int from, int to) {
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
inline int64_t offset_of(const std::vector<ViewAxis>& axes, int64_t index) {
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
inline const uint8_t* contiguous(const Memory& m, std::vector<uint8_t>* copy) {
  const int64_t n = m.shape.size(), item = item_size(m.dtype);
  if (n == 0 || is_contiguous(m.shape, m.strides)) return m.data;
  copy->resize(static_cast<size_t>(n * item));
  const Rows rows(m, m.shape.rank - 1);
  in_pieces(n / rows.width, n * item, [&](int64_t from, int64_t to) { rows.read(copy->data() + from * rows.width * item, from, to - from); });
  return copy->data();
}

// By the name of the instruction; what is not here is in move.cc.
void gather(const Move& m);
void scatter(const Move& m);
void scatter_add(const Move& m);
void gather_elements(const Move& m);
void scatter_elements(const Move& m);
void scatter_add_elements(const Move& m);
void cumsum(const Move& m);
void arg_extreme(const Move& m);
void sort(const Move& m);

}  // namespace dvm
