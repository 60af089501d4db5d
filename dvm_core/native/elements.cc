#include "elements.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace dvm {

void write_scalar(void* to, DType dtype, const Imm& value) {
  const Kernels& k = kernels();
  if (value.is_int) k.cast[int(DType::kI64)][int(dtype)](to, &value.i, 1);
  else k.cast[int(DType::kF64)][int(dtype)](to, &value.f, 1);
}

void write_identity(void* to, DType dtype, Op op) {
  const auto put = [&]<class T>(T zero) {
    using L = std::numeric_limits<T>;
    T least = L::lowest(), greatest = L::max();
    if constexpr (L::has_infinity) {
      least = -L::infinity();
      greatest = L::infinity();
    }
    const T value = op == Op::kMAX ? least : op == Op::kMIN ? greatest : op == Op::kPROD ? T{1} : zero;
    std::memcpy(to, &value, sizeof value);
  };
  switch (dtype) {
    case DType::kF32: return put(0.0f);
    case DType::kF64: return put(0.0);
    case DType::kBool: return put(false);
    case DType::kI8: return put(int8_t{0});
    case DType::kU8: return put(uint8_t{0});
    case DType::kI32: return put(int32_t{0});
    case DType::kI64: return put(int64_t{0});
    default: {
      float value;
      write_identity(&value, DType::kF32, op);
      kernels().cast[int(DType::kF32)][int(dtype)](to, &value, 1);
    }
  }
}

void read_axes(uint8_t* dst, const uint8_t* src, Axes row_axes, Axes col_axes, int64_t row, int64_t rows, int64_t col, int64_t cols, int item) {
  const Kernels& k = kernels();
  const ViewAxis one{1, 0};
  const ViewAxis inner_row = row_axes.rank ? row_axes.at[row_axes.rank - 1] : one, inner_col = col_axes.rank ? col_axes.at[col_axes.rank - 1] : one;
  // The address of the row or column whose innermost digit is 0, and that digit.
  const auto locate = [](Axes axes, int64_t index, int64_t* digit) {
    int64_t offset = 0;
    *digit = 0;
    if (!axes.rank) return offset;
    *digit = index % axes.at[axes.rank - 1].extent;
    index /= axes.at[axes.rank - 1].extent;
    for (int a = axes.rank - 2; a >= 0; --a) {
      offset += index % axes.at[a].extent * axes.at[a].stride;
      index /= axes.at[a].extent;
    }
    return offset;
  };
  for (int64_t r = row; r < row + rows;) {
    int64_t digit;
    const int64_t offset = locate(row_axes, r, &digit);
    const uint8_t* from = src + offset + digit * inner_row.stride;
    if (col_axes.rank <= 1) {
      const int64_t some = row_axes.rank ? std::min(inner_row.extent - digit, row + rows - r) : row + rows - r;
      k.copy_in(dst, from + col * inner_col.stride, some, cols, inner_row.stride, inner_col.stride, item);
      dst += some * cols * item;
      r += some;
      continue;
    }
    for (int64_t c = col; c < col + cols;) {
      int64_t col_digit;
      const uint8_t* at = from + locate(col_axes, c, &col_digit);
      const int64_t run = std::min(inner_col.extent - col_digit, col + cols - c);
      // Whole innermost runs go together, as the rows of one copy.
      const ViewAxis& above = col_axes.at[col_axes.rank - 2];
      int64_t runs = 1;
      if (col_digit == 0 && run == inner_col.extent) runs = std::max<int64_t>(1, std::min(above.extent - c / run % above.extent, (col + cols - c) / run));
      k.copy_in(dst, at + col_digit * inner_col.stride, runs, run, above.stride, inner_col.stride, item);
      dst += runs * run * item;
      c += runs * run;
    }
    ++r;
  }
}

}  // namespace dvm
