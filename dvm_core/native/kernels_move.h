// Copies between strided and contiguous memory, and fill. Strides are in bytes and may be 0 (broadcast) or negative.
#pragma once
#include "kernels_common.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

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

// ---- transposes ---------------------------------------------------------------------------------------------------------------------------

// As many 4-byte items as a vector has: squares of them are turned in registers.
typedef uint32_t Words __attribute__((vector_size(kVectorBytes)));
inline constexpr int kWords = kVectorBytes / 4;
inline constexpr int64_t kFewStreams = 64;  // rows whose lines stay in the first-level cache while all of them are gone through

// One half of x and y, item by item in turn: a0 b0 a1 b1 ...
template <int First, int... I>
DVM_INLINE Words zip(Words x, Words y) {
  return __builtin_shufflevector(x, y, (I % 2 * kWords + First + I / 2)...);
}

// q[c] = item c of each of kWords rows; at(r): where row r begins.
template <int... I, class At>
DVM_INLINE void turn_square(Words* q, const At& at) {
#if defined(__AVX2__)
  const auto four = [&](int row, int part) { return _mm_loadu_ps(reinterpret_cast<const float*>(at(row)) + 4 * part); };
#endif
#if defined(__AVX512F__)
  // Loads put four items of rows j, j + 4, j + 8, j + 12 side by side, which leaves half of the shuffles.
  DVM_UNROLL
  for (int part = 0; part < 4; ++part) {
    __m512 x[4];
    DVM_UNROLL
    for (int j = 0; j < 4; ++j) {
      x[j] = _mm512_castps128_ps512(four(j, part));
      x[j] = _mm512_mask_broadcast_f32x4(x[j], 0x00f0, four(j + 4, part));
      x[j] = _mm512_mask_broadcast_f32x4(x[j], 0x0f00, four(j + 8, part));
      x[j] = _mm512_mask_broadcast_f32x4(x[j], 0xf000, four(j + 12, part));
    }
    const __m512d low0 = __m512d(_mm512_unpacklo_ps(x[0], x[1])), low1 = __m512d(_mm512_unpacklo_ps(x[2], x[3]));
    const __m512d high0 = __m512d(_mm512_unpackhi_ps(x[0], x[1])), high1 = __m512d(_mm512_unpackhi_ps(x[2], x[3]));
    q[4 * part] = Words(_mm512_unpacklo_pd(low0, low1));
    q[4 * part + 1] = Words(_mm512_unpackhi_pd(low0, low1));
    q[4 * part + 2] = Words(_mm512_unpacklo_pd(high0, high1));
    q[4 * part + 3] = Words(_mm512_unpackhi_pd(high0, high1));
  }
#elif defined(__AVX2__)
  // The same with rows j and j + 4.
  DVM_UNROLL
  for (int part = 0; part < 2; ++part) {
    __m256 x[4];
    DVM_UNROLL
    for (int j = 0; j < 4; ++j) x[j] = _mm256_insertf128_ps(_mm256_castps128_ps256(four(j, part)), four(j + 4, part), 1);
    const __m256d low0 = __m256d(_mm256_unpacklo_ps(x[0], x[1])), low1 = __m256d(_mm256_unpacklo_ps(x[2], x[3]));
    const __m256d high0 = __m256d(_mm256_unpackhi_ps(x[0], x[1])), high1 = __m256d(_mm256_unpackhi_ps(x[2], x[3]));
    q[4 * part] = Words(_mm256_unpacklo_pd(low0, low1));
    q[4 * part + 1] = Words(_mm256_unpackhi_pd(low0, low1));
    q[4 * part + 2] = Words(_mm256_unpacklo_pd(high0, high1));
    q[4 * part + 3] = Words(_mm256_unpackhi_pd(high0, high1));
  }
#else
  Words t[kWords];
  for (int i = 0; i < kWords; ++i) memcpy(&q[i], at(i), sizeof(Words));
  // Zipping row i with row i + half moves the top bit of the row number to the bottom of the column number; log2 times, and all have moved.
  DVM_UNROLL
  for (int bit = 1; bit < kWords; bit *= 2) {
    DVM_UNROLL
    for (int i = 0; i < kWords / 2; ++i) {
      t[2 * i] = zip<0, I...>(q[i], q[i + kWords / 2]);
      t[2 * i + 1] = zip<kWords / 2, I...>(q[i], q[i + kWords / 2]);
    }
    DVM_UNROLL
    for (int i = 0; i < kWords; ++i) q[i] = t[i];
  }
#endif
}
template <class At>
DVM_INLINE void turn_words(Words* q, const At& at) {
  if constexpr (kWords == 16) turn_square<0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15>(q, at);
  else if constexpr (kWords == 8) turn_square<0, 1, 2, 3, 4, 5, 6, 7>(q, at);
  else turn_square<0, 1, 2, 3>(q, at);
}

DVM_INLINE void transpose_words(char* dst, int64_t dst_stride, const char* src, int64_t src_stride) {
  Words q[kWords];
  turn_words(q, [&](int row) { return src + row * src_stride; });
  DVM_UNROLL
  for (int i = 0; i < kWords; ++i) memcpy(dst + i * dst_stride, &q[i], sizeof(Words));
}

// dst[r][c] = src[c][r]: both sides have contiguous rows (dst: `cols` items, src: `rows` items), the given bytes apart.
template <class T>
void transpose(char* dst, int64_t dst_stride, const char* src, int64_t src_stride, int64_t rows, int64_t cols) {
  constexpr int64_t kItem = sizeof(T), kSide = 64 / kItem;  // blocks of whole cache lines
  const auto items = [&](int64_t r0, int64_t r1, int64_t c0, int64_t c1) {
    for (int64_t r = r0; r < r1; ++r)
      for (int64_t c = c0; c < c1; ++c) memcpy(dst + r * dst_stride + c * kItem, src + c * src_stride + r * kItem, kItem);
  };
  int64_t r = 0;
  if constexpr (kItem == 4) {
    // So many streams are not read ahead by themselves: while lines of a few rows are turned, their next ones are on their way.
    const bool few = cols <= kFewStreams;
    for (; r + kSide <= rows; r += kSide) {
      int64_t c = 0;
      for (; c + kWords <= cols; c += kWords) {
        const char* from = src + c * src_stride + r * kItem;
        char* to = dst + r * dst_stride + c * kItem;
        if (few) {
          DVM_UNROLL
          for (int i = 0; i < kWords; ++i) __builtin_prefetch(from + i * src_stride + 64);
        }
        DVM_UNROLL
        for (int64_t part = 0; part < kSide; part += kWords) transpose_words(to + part * dst_stride, dst_stride, from + part * kItem, src_stride);
      }
      items(r, r + kSide, c, cols);
    }
    for (; r + kWords <= rows; r += kWords) {
      int64_t c = 0;
      for (; c + kWords <= cols; c += kWords) transpose_words(dst + r * dst_stride + c * kItem, dst_stride, src + c * src_stride + r * kItem, src_stride);
      items(r, r + kWords, c, cols);
    }
  }
  for (; r < rows; r += kSide)
    for (int64_t c = 0; c < cols; c += kSide) items(r, smaller(r + kSide, rows), c, smaller(c + kSide, cols));
}

// ---- any strides --------------------------------------------------------------------------------------------------------------------------

// The strided side is read (In) or written. Both loops go over blocks of kSide x kSide, so that a transposed operand uses whole cache lines.
template <class T, bool In>
void copy_strided(char* packed, char* strided, int64_t rows, int64_t cols, int64_t row_stride, int64_t col_stride) {
  constexpr int64_t kSide = 16;
  auto move = [&](int64_t r, int64_t c) {
    char* p = packed + (r * cols + c) * int64_t(sizeof(T));
    char* s = strided + r * row_stride + c * col_stride;
    memcpy(In ? p : s, In ? s : p, sizeof(T));
  };
  // Rows next to each other in memory: a transpose, seen from the strided or from the packed side.
  if (row_stride == int64_t(sizeof(T))) {
    if (In) return transpose<T>(packed, cols * int64_t(sizeof(T)), strided, col_stride, rows, cols);
    return transpose<T>(strided, col_stride, packed, cols * int64_t(sizeof(T)), cols, rows);
  }
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

// Short runs of one length, a vector or more, without a call for each: the last vector covers what is left, and some of the one before.
inline constexpr int64_t kShortRun = 1024;
inline void copy_runs(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t runs, int64_t bytes) {
  const int64_t last = bytes - int64_t(sizeof(Words));
  for (int64_t r = 0; r < runs; ++r, to += to_stride, from += from_stride) {
    Words v;
    for (int64_t i = 0; i < last; i += sizeof(Words)) {
      memcpy(&v, from + i, sizeof(v));
      memcpy(to + i, &v, sizeof(v));
    }
    memcpy(&v, from + last, sizeof(v));
    memcpy(to + last, &v, sizeof(v));
  }
}

template <bool In>
void copy(char* packed, char* strided, int64_t rows, int64_t cols, int64_t row_stride, int64_t col_stride, int item) {
  if (rows <= 0 || cols <= 0) return;
  const int64_t line = cols * item;
  if (cols == 1) col_stride = item;
  if (rows == 1) row_stride = line;
  auto lines = [&](int64_t number, int64_t bytes) {
    for (int64_t r = 0; r < number; ++r) {
      char *p = packed + r * line, *s = strided + r * row_stride;
      memcpy(In ? p : s, In ? s : p, size_t(bytes));
    }
  };
  if (col_stride == item && row_stride == line) {
    lines(1, rows * line);
  } else if (col_stride == item && line >= int64_t(sizeof(Words)) && line <= kShortRun) {
    if (In) copy_runs(packed, line, strided, row_stride, rows, line);
    else copy_runs(strided, row_stride, packed, line, rows, line);
  } else if (col_stride == item) {
    lines(rows, line);
  } else if (In && col_stride == 0) {
    for (int64_t r = 0; r < rows; ++r) fill(packed + r * line, strided + r * row_stride, cols, item);
  } else {
    copy_items<In>(packed, strided, rows, cols, row_stride, col_stride, item);
  }
}

inline void copy_in(void* dst, const void* src, int64_t rows, int64_t cols, int64_t row_stride, int64_t col_stride, int item) {
  copy<true>(static_cast<char*>(dst), static_cast<char*>(const_cast<void*>(src)), rows, cols, row_stride, col_stride, item);
}

inline void copy_out(void* dst, const void* src, int64_t rows, int64_t cols, int64_t row_stride, int64_t col_stride, int item) {
  copy<false>(static_cast<char*>(const_cast<void*>(src)), static_cast<char*>(dst), rows, cols, row_stride, col_stride, item);
}

}  // namespace dvm::DVM_LEVEL
