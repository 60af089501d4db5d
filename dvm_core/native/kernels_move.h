// Copies between strided and contiguous memory, and fill. Strides are in bytes and may be 0 (broadcast) or negative.
#pragma once
#include "kernels_common.h"

namespace dvm::DVM_LEVEL {

template <class T>
void fill_with(void* dst, T value, int64_t n) {
  auto* d = static_cast<T*>(dst);
  for (int64_t i = 0; i < n; ++i) d[i] = value;
}

inline void fill(void* dst, const void* value, int64_t n, int item) {
  auto as = [&](auto zero) {
    memcpy(&zero, value, sizeof zero);
    fill_with(dst, zero, n);
  };
  switch (item) {
    case 1: return as(uint8_t{});
    case 2: return as(uint16_t{});
    case 4: return as(uint32_t{});
    case 8: return as(uint64_t{});
    default: return;
  }
}

// The strided side is read (In) or written. Both loops go over blocks of kSide x kSide, so that a transposed operand uses whole cache lines.
template <class T, bool In>
void copy_strided(char* packed, char* strided, int64_t rows, int64_t cols, int64_t row_stride, int64_t col_stride) {
  constexpr int64_t kSide = 16;
  auto move = [&](int64_t r, int64_t c) {
    char* p = packed + (r * cols + c) * int64_t(sizeof(T));
    char* s = strided + r * row_stride + c * col_stride;
    memcpy(In ? p : s, In ? s : p, sizeof(T));
  };
  if ((row_stride < 0 ? -row_stride : row_stride) >= (col_stride < 0 ? -col_stride : col_stride)) {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < cols; ++c) move(r, c);
    return;
  }
  for (int64_t r0 = 0; r0 < rows; r0 += kSide)
    for (int64_t c0 = 0; c0 < cols; c0 += kSide)
      for (int64_t r = r0; r < smaller(r0 + kSide, rows); ++r)
        for (int64_t c = c0; c < smaller(c0 + kSide, cols); ++c) move(r, c);
}

template <bool In>
void copy_items(char* packed, char* strided, int64_t rows, int64_t cols, int64_t row_stride, int64_t col_stride, int item) {
  switch (item) {
    case 1: return copy_strided<uint8_t, In>(packed, strided, rows, cols, row_stride, col_stride);
    case 2: return copy_strided<uint16_t, In>(packed, strided, rows, cols, row_stride, col_stride);
    case 4: return copy_strided<uint32_t, In>(packed, strided, rows, cols, row_stride, col_stride);
    case 8: return copy_strided<uint64_t, In>(packed, strided, rows, cols, row_stride, col_stride);
    default: return;
  }
}

inline void copy_in(void* dst, const void* src, int64_t rows, int64_t cols, int64_t row_stride, int64_t col_stride, int item) {
  if (rows <= 0 || cols <= 0) return;
  auto* d = static_cast<char*>(dst);
  auto* s = static_cast<char*>(const_cast<void*>(src));
  const int64_t line = cols * item;
  if (cols == 1) col_stride = item;
  if (rows == 1) row_stride = line;
  if (col_stride == item && row_stride == line) {
    memcpy(d, s, size_t(rows * line));
  } else if (col_stride == item) {
    for (int64_t r = 0; r < rows; ++r) memcpy(d + r * line, s + r * row_stride, size_t(line));
  } else if (col_stride == 0) {
    for (int64_t r = 0; r < rows; ++r) fill(d + r * line, s + r * row_stride, cols, item);
  } else {
    copy_items<true>(d, s, rows, cols, row_stride, col_stride, item);
  }
}

inline void copy_out(void* dst, const void* src, int64_t rows, int64_t cols, int64_t row_stride, int64_t col_stride, int item) {
  if (rows <= 0 || cols <= 0) return;
  auto* d = static_cast<char*>(dst);
  auto* s = static_cast<char*>(const_cast<void*>(src));
  const int64_t line = cols * item;
  if (cols == 1) col_stride = item;
  if (rows == 1) row_stride = line;
  if (col_stride == item && row_stride == line) {
    memcpy(d, s, size_t(rows * line));
  } else if (col_stride == item) {
    for (int64_t r = 0; r < rows; ++r) memcpy(d + r * row_stride, s + r * line, size_t(line));
  } else {
    copy_items<false>(s, d, rows, cols, row_stride, col_stride, item);
  }
}

}  // namespace dvm::DVM_LEVEL
