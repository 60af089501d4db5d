// Products of rows that begin or end with zeros, as the transposed probabilities and score gradients of a causal mask do: the zeros of all rows
// of a register tile are not multiplied.
//
// Why no bit changes. A sum starts at +0, and 0 times a finite number added to +0 gives +0: zeros at the beginning leave no trace. At the end
// they leave one only in a sum that is -0 (all of it underflowed): such tiles are computed whole. With a NaN or an infinity in B nothing is
// left out.
#pragma once
#include "kernels_gemm_pack.h"

namespace dvm::DVM_LEVEL {

inline constexpr int64_t kBlockM = 168;        // rows of A in the scratch
inline constexpr int64_t kFewestSteps = 48;    // of a sum, below which nobody looks
inline constexpr int64_t kWorthShare = 16;     // one of so many products must be with a zero

struct Part {
  int64_t first, count;
};

// Finite: rows x cols floats whose neighbours along cols are contiguous.
inline bool all_finite(const float* x, int64_t rows, int64_t cols, int64_t row) {
  for (int64_t r = 0; r < rows; ++r, x += row) {
    uint32_t largest = 0;
    for (int64_t j = 0; j < cols; ++j) {
      const uint32_t magnitude = bits_as<uint32_t>(x[j]) & 0x7fffffffu;
      largest = magnitude > largest ? magnitude : largest;
    }
    if (largest >= 0x7f800000u) return false;
  }
  return true;
}

// Where the rows of a block of A begin and end, zeros left out.
struct ZeroEnds {
  bool any = false;
  uint16_t front[kBlockM], back[kBlockM];

  // `b`: the k rows of B that belong to the block, n columns.
  struct Right {
    const float* b;
    int64_t row, col, n;
    bool known = false, finite = false;
    bool all(int64_t k) {
      if (!known) finite = col == 1 ? all_finite(b, k, n, row) : row == 1 && all_finite(b, n, k, col);
      known = true;
      return finite;
    }
  };

  // Steps that are zero in every row, before the first that is not. a: rows next to each other, steps a_col apart.
  static int64_t whole_steps(const float* a, int64_t a_col, int64_t rows, int64_t k, Right* right) {
    if (k < kFewestSteps || rows < kRun) return 0;
    int64_t first = 0;
    for (; first < k; ++first, a += a_col) {
      if (first + kRun < k)
        for (int64_t r = 0; r < rows; r += kRun) __builtin_prefetch(a + kRun * a_col + r);
      bool zero = zeros(a + rows - kRun);
      for (int64_t r = 0; zero && r + kRun < rows; r += kRun) zero = zeros(a + r);
      if (!zero) break;
    }
    return first >= kRun && right->all(k) ? first : 0;
  }

  // Rows in the scratch, from step `from` on: what lies before it there is not theirs, so parts begin behind it however few the zeros are.
  void find(const float* a, int64_t rows, int64_t from, int64_t k, Right* right) {
    if (k < kFewestSteps) return;
    int64_t found = 0;
    for (int64_t r = 0; r < rows; ++r, a += kScratchRow) {
      int64_t first = from, last = k;
      while (first + kRun <= k && zeros(a + first)) first += kRun;
      while (first < k && a[first] == 0) ++first;
      if (first < k) {
        while (last - kRun > first && zeros(a + last - kRun)) last -= kRun;
        while (a[last - 1] == 0) --last;
      }
      front[r] = uint16_t(first);
      back[r] = uint16_t(first < k ? k - last : k);
      found += first < k ? k - (last - first) : k;
    }
    any = (from > 0 || found * kWorthShare >= rows * k) && right->all(k);
  }

  // The steps that rows [r, r + some) need.
  Part part(int64_t r, int64_t some, int64_t k) const {
    if (!any) return {0, k};
    int64_t first = k, last = k;
    for (int64_t i = r; i < r + some; ++i) {
      first = smaller<int64_t>(first, front[i]);
      last = smaller<int64_t>(last, back[i]);
    }
    last = k - last;
    return {first, last > first ? last - first : 0};
  }

 private:
  static constexpr int64_t kRun = 16;
  static DVM_INLINE bool zeros(const float* a) {
    uint32_t bits = 0;
    for (int64_t i = 0; i < kRun; ++i) bits |= bits_as<uint32_t>(a[i]);
    return (bits & 0x7fffffffu) == 0;
  }
};

inline bool has_minus_zero(const float* x, int64_t rows, int64_t row, int64_t cols) {
  uint32_t found = 0;
  for (int64_t r = 0; r < rows; ++r, x += row)
    for (int64_t j = 0; j < cols; ++j) found |= uint32_t(bits_as<uint32_t>(x[j]) == 0x80000000u);
  return found;
}

// c = x, or c + x.
inline void join_tile(float* c, int64_t ldc, const float* x, int64_t row, int64_t rows, int64_t cols, bool add) {
  for (int64_t r = 0; r < rows; ++r, c += ldc, x += row) {
    if (!add) {
      memcpy(c, x, size_t(cols) * sizeof(float));
    } else {
      DVM_INDEPENDENT
      for (int64_t j = 0; j < cols; ++j) c[j] = c[j] + x[j];
    }
  }
}

}  // namespace dvm::DVM_LEVEL
