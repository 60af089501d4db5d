// CUMSUM: along the axis one element after the other, so the order is the shape's. Halves are summed in float32 and each sum is rounded.
#include "move.h"
#include "optable.h"

namespace dvm {
namespace {

constexpr int64_t kColumns = 512;  // of a piece: their sums stay in the first-level cache

// [extent, cols] elements with rows `line` elements apart.
template <class T>
void scan(T* dst, const T* src, int64_t extent, int64_t cols, int64_t line, bool exclusive, bool reverse) {
  T sum[kColumns];
  std::fill(sum, sum + cols, T{});
  for (int64_t i = 0; i < extent; ++i) {
    const int64_t row = (reverse ? extent - 1 - i : i) * line;
    const T* x = src + row;
    T* r = dst + row;
    if (exclusive) {
      for (int64_t j = 0; j < cols; ++j) {
        const T more = x[j];  // r may be x
        r[j] = sum[j];
        sum[j] = static_cast<T>(sum[j] + more);
      }
    } else if (i == 0) {
      for (int64_t j = 0; j < cols; ++j) r[j] = sum[j] = x[j];  // 0 + -0 would be 0
    } else {
      for (int64_t j = 0; j < cols; ++j) r[j] = sum[j] = static_cast<T>(sum[j] + x[j]);
    }
  }
}

// One contiguous row: the sum stays in a register.
template <class T>
void scan_row(T* dst, const T* src, int64_t n, bool exclusive, bool reverse) {
  T sum{};
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = reverse ? n - 1 - i : i;
    const T more = src[at];
    const T next = i == 0 && !exclusive ? more : static_cast<T>(sum + more);
    dst[at] = exclusive ? sum : next;
    sum = next;
  }
}

}  // namespace

void cumsum(const Move& m) {
  const Dims& shape = m.in.shape;
  const int axis = static_cast<int>(m.in.attrs[0]);
  const bool exclusive = m.in.attrs[1], reverse = m.in.attrs[2];
  const int64_t outer = product(shape, 0, axis), extent = shape[axis], inner = product(shape, axis + 1, shape.rank), n = shape.size();
  std::vector<uint8_t> copy;
  const uint8_t* src = contiguous(m.operands[0], &copy);
  const int64_t pieces = (inner + kColumns - 1) / kColumns;
  const auto run = [&]<class T>(T, const void* from, void* to) {
    in_pieces(outer * pieces, n * m.item, [&](int64_t first, int64_t last) {
      for (int64_t unit = first; unit < last; ++unit) {
        const int64_t col = unit % pieces * kColumns, at = unit / pieces * extent * inner + col;
        if (inner == 1) scan_row(static_cast<T*>(to) + at, static_cast<const T*>(from) + at, extent, exclusive, reverse);
        else scan(static_cast<T*>(to) + at, static_cast<const T*>(from) + at, extent, std::min(kColumns, inner - col), inner, exclusive, reverse);
      }
    });
  };
  switch (m.in.dtype) {
    case DType::kF32: return run(float{}, src, m.dst);
    case DType::kF64: return run(double{}, src, m.dst);
    case DType::kI8:
    case DType::kU8: return run(uint8_t{}, src, m.dst);  // unsigned: wraps
    case DType::kI32: return run(uint32_t{}, src, m.dst);
    case DType::kI64: return run(uint64_t{}, src, m.dst);
    default: {
      std::vector<float> wide(static_cast<size_t>(n));
      m.k.cast[int(m.in.dtype)][int(DType::kF32)](wide.data(), src, n);
      run(float{}, wide.data(), wide.data());
      m.k.cast[int(DType::kF32)][int(m.in.dtype)](m.dst, wide.data(), n);
    }
  }
}

}  // namespace dvm
