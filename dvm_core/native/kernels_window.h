// Windows that move over planes: the window matrix of a convolution, packed block by block as the products want it, and pooling.
#pragma once
#include "kernels_elementwise.h"
#include "kernels_gemm.h"

namespace dvm::DVM_LEVEL {

// Outputs [first, last) of an axis whose tap `tap` lies on the input (on a position between two inputs as well, where there are gaps).
struct TapRange {
  int64_t first, last, at;  // at: position of output 0
};

DVM_INLINE int64_t at_most(int64_t x, int64_t low, int64_t high) { return x < low ? low : x < high ? x : high; }

DVM_INLINE TapRange range_from(const WindowAxis& a, int64_t at) {
  const int64_t end = (a.in - 1) * a.gap - at;  // the last output has o * stride <= end
  const int64_t first = at >= 0 ? 0 : (-at + a.stride - 1) / a.stride, last = end < 0 ? 0 : end / a.stride + 1;
  return {at_most(first, 0, a.out), at_most(last, 0, a.out), at};
}
DVM_INLINE TapRange tap_range(const WindowAxis& a, int64_t tap) { return range_from(a, tap * a.dilation - a.before); }

// n elements of one input row as outputs ox, ox + 1 ... see them through a tap.
template <class T>
DVM_INLINE void window_run(T* dst, const T* row, int64_t col, const WindowAxis& x, const TapRange& tap, int64_t ox, int64_t n) {
  const int64_t first = at_most(tap.first - ox, 0, n), last = at_most(tap.last - ox, first, n);
  for (int64_t i = 0; i < first; ++i) dst[i] = T(0);
  const int64_t at = tap.at + ox * x.stride;
  if (first == last) {
  } else if (x.gap == 1) {
    const T* from = row + at * col;
    const int64_t step = x.stride * col;
    if (step == 1) {
      for (int64_t i = first; i < last; ++i) dst[i] = from[i];
    } else {
      for (int64_t i = first; i < last; ++i) dst[i] = from[i * step];
    }
  } else {
    for (int64_t i = first; i < last; ++i) {
      const int64_t position = at + i * x.stride;
      dst[i] = position % x.gap ? T(0) : row[position / x.gap * col];
    }
  }
  for (int64_t i = last; i < n; ++i) dst[i] = T(0);
}

// Columns [col, col + cols) of row `k` of the window matrix.
template <class T>
void window_line(T* dst, const T* src, const Window& w, int64_t k, int64_t col, int64_t cols) {
  const WindowAxis &y = w.y, &x = w.x;
  const int64_t tap_y = k / x.taps % y.taps;
  const T* plane = src + k / x.taps / y.taps * w.channel;
  const TapRange tap = tap_range(x, k % x.taps);
  const int64_t at = tap_y * y.dilation - y.before;
  int64_t oy = col / x.out, ox = col % x.out;
  // The plane itself, row after row.
  if (x.taps == 1 && y.taps == 1 && x.stride == 1 && y.stride == 1 && x.before == 0 && y.before == 0 && x.gap == 1 && y.gap == 1 && x.in == x.out &&
      y.in == y.out && w.col == 1 && (w.row == x.in || y.in == 1)) {
    memcpy(dst, plane + col, size_t(cols) * sizeof(T));
    return;
  }
  while (cols > 0) {
    const int64_t n = smaller(x.out - ox, cols), position = at + oy * y.stride;
    if (position < 0 || position > (y.in - 1) * y.gap || (y.gap > 1 && position % y.gap)) {
      for (int64_t i = 0; i < n; ++i) dst[i] = T(0);
    } else {
      window_run(dst, plane + position / y.gap * w.row, w.col, x, tap, ox, n);
    }
    dst += n;
    cols -= n;
    ox = 0;
    ++oy;
  }
}

// rows x cols of the window matrix from (row, col) on. Line by line, 256 columns at a time, into panels.
inline void pack_window_panels(float* dst, const float* src, const Window& w, int64_t row, int64_t rows, int64_t col, int64_t cols) {
  constexpr int64_t kAtOnce = 256;
  alignas(64) float line[kAtOnce];
  for (int64_t c = 0; c < cols; c += kAtOnce) {
    const int64_t some = smaller(kAtOnce, cols - c), filled = (some + kPanel - 1) / kPanel * kPanel;
    for (int64_t j = some; j < filled; ++j) line[j] = 0;
    float* to = dst + c * rows;
    for (int64_t k = 0; k < rows; ++k, to += kPanel) {
      window_line(line, src, w, row + k, col + c, some);
      for (int64_t j = 0; j < filled; j += kPanel) memcpy(to + j * rows, line + j, kPanel * sizeof(float));
    }
  }
}

// The same of its transpose: rows are outputs, columns are taps.
inline void pack_taps_panels(float* dst, const float* src, const Window& w, int64_t row, int64_t rows, int64_t col, int64_t cols) {
  constexpr int64_t kAtOnce = 128;
  alignas(64) float lines[kPanel * kAtOnce];
  for (int64_t c = 0; c < cols; c += kPanel, dst += rows * kPanel) {
    const int64_t some = smaller(int64_t(kPanel), cols - c);
    if (some < kPanel) memset(dst, 0, size_t(rows * kPanel) * sizeof(float));
    for (int64_t r = 0; r < rows; r += kAtOnce) {
      const int64_t count = smaller(kAtOnce, rows - r);
      for (int64_t j = 0; j < some; ++j) window_line(lines + j * kAtOnce, src, w, col + c + j, row + r, count);
      transpose<float>(reinterpret_cast<char*>(dst + r * kPanel), kPanel * 4, reinterpret_cast<const char*>(lines), kAtOnce * 4, count, some);
    }
  }
}

inline void pack_window_f32(void* dst, const void* src, const Window& w, bool transposed, int64_t row, int64_t rows, int64_t col, int64_t cols) {
  (transposed ? pack_taps_panels : pack_window_panels)(static_cast<float*>(dst), static_cast<const float*>(src), w, row, rows, col, cols);
}

inline void pack_window_f64(void* dst, const void* src, const Window& w, bool transposed, int64_t row, int64_t rows, int64_t col, int64_t cols) {
  auto* d = static_cast<double*>(dst);
  auto* s = static_cast<const double*>(src);
  if (!transposed) {
    for (int64_t k = 0; k < rows; ++k) window_line(d + k * cols, s, w, row + k, col, cols);
    return;
  }
  constexpr int64_t kAtOnce = 64;
  double line[kAtOnce];
  for (int64_t r = 0; r < rows; r += kAtOnce) {
    const int64_t count = smaller(kAtOnce, rows - r);
    for (int64_t j = 0; j < cols; ++j) {
      window_line(line, s, w, col + j, row + r, count);
      for (int64_t i = 0; i < count; ++i) d[(r + i) * cols + j] = line[i];
    }
  }
}

// c (+)= a @ b in float64, b row by row; each element one sum over k in order, product and sum rounded apart.
inline void gemm_rows(double* c, int64_t ldc, const double* a, int64_t a_row, int64_t a_col, const double* b, int64_t m, int64_t n, int64_t k, bool add) {
  for (int64_t r = 0; r < m; ++r) {
    double* out = c + r * ldc;
    if (!add)
      for (int64_t j = 0; j < n; ++j) out[j] = 0;
    for (int64_t i = 0; i < k; ++i) {
      const double f = a[r * a_row + i * a_col];
      const double* line = b + i * n;
      DVM_INDEPENDENT
      for (int64_t j = 0; j < n; ++j) out[j] = out[j] + f * line[j];
    }
  }
}

// ---- pooling: one contiguous plane; taps in row-major order ---------------------------------------------------------------------------

// fn(output row, tap y, input row) for the taps that lie on the plane.
template <class F>
DVM_INLINE void each_row(const WindowAxis& y, int64_t oy, F&& fn) {
  for (int64_t t = 0; t < y.taps; ++t) {
    const int64_t at = oy * y.stride - y.before + t * y.dilation;
    if (at >= 0 && at < y.in) fn(at);
  }
}

template <class T>
void pool_max(void* dst, const void* src, const Window& w) {
  auto* to = static_cast<T*>(dst);
  for (int64_t oy = 0; oy < w.y.out; ++oy, to += w.x.out) {
    for (int64_t i = 0; i < w.x.out; ++i) to[i] = T(-__builtin_inf());
    each_row(w.y, oy, [&](int64_t iy) {
      const T* row = static_cast<const T*>(src) + iy * w.x.in;
      for (int64_t t = 0; t < w.x.taps; ++t) {
        const TapRange tap = tap_range(w.x, t);
        DVM_INDEPENDENT
        for (int64_t i = tap.first; i < tap.last; ++i) to[i] = Maximum::of(to[i], row[tap.at + i * w.x.stride]);
      }
    });
  }
}

// Place of the first largest element of a window (the last NaN, if there is one); -1: the window sees none.
template <class T>
DVM_INLINE int64_t first_largest(const T* from, const Window& w, int64_t oy, int64_t ox) {
  int64_t best = -1;
  each_row(w.y, oy, [&](int64_t iy) {
    for (int64_t t = 0; t < w.x.taps; ++t) {
      const int64_t ix = ox * w.x.stride - w.x.before + t * w.x.dilation;
      if (ix < 0 || ix >= w.x.in) continue;
      const int64_t at = iy * w.x.in + ix;
      if (best < 0 || from[at] > from[best] || from[at] != from[at]) best = at;
    }
  });
  return best;
}

// dst = the element of `other` where src has the first largest (the last NaN) of each window.
template <class T>
void pool_max_pick(void* dst, const void* src, const void* other, const Window& w) {
  for (int64_t oy = 0; oy < w.y.out; ++oy)
    for (int64_t ox = 0; ox < w.x.out; ++ox) {
      const int64_t at = first_largest(static_cast<const T*>(src), w, oy, ox);
      static_cast<T*>(dst)[oy * w.x.out + ox] = at < 0 ? T(0) : static_cast<const T*>(other)[at];
    }
}

// dst, zeroed, gets each g added there.
template <class T>
void pool_max_back(void* dst, const void* src, const void* g, const Window& w) {
  auto* to = static_cast<T*>(dst);
  for (int64_t oy = 0; oy < w.y.out; ++oy)
    for (int64_t ox = 0; ox < w.x.out; ++ox) {
      const int64_t at = first_largest(static_cast<const T*>(src), w, oy, ox);
      if (at >= 0) to[at] = to[at] + static_cast<const T*>(g)[oy * w.x.out + ox];
    }
}

// Positions of window o that count, of one axis.
DVM_INLINE int64_t counted(const WindowAxis& a, int64_t low, int64_t high, int64_t o) {
  const int64_t first = o * a.stride - a.before, last = first + a.taps;
  return (last < high ? last : high) - (first > low ? first : low);
}

template <class T>
DVM_INLINE T divisor(const MeanWindow& m, int64_t oy, int64_t ox) {
  if (m.divisor) return T(m.divisor);
  const int64_t rows = counted(m.window.y, m.y_low, m.y_high, oy), cols = counted(m.window.x, m.x_low, m.x_high, ox);
  return T(rows > 0 && cols > 0 ? rows * cols : 1);
}

template <class T>
void pool_mean(void* dst, const void* src, const MeanWindow& m) {
  const Window& w = m.window;
  auto* to = static_cast<T*>(dst);
  for (int64_t oy = 0; oy < w.y.out; ++oy, to += w.x.out) {
    for (int64_t i = 0; i < w.x.out; ++i) to[i] = T(0);
    each_row(w.y, oy, [&](int64_t iy) {
      const T* row = static_cast<const T*>(src) + iy * w.x.in;
      for (int64_t t = 0; t < w.x.taps; ++t) {
        const TapRange tap = tap_range(w.x, t);
        DVM_INDEPENDENT
        for (int64_t i = tap.first; i < tap.last; ++i) to[i] = to[i] + row[tap.at + i * w.x.stride];
      }
    });
    for (int64_t i = 0; i < w.x.out; ++i) to[i] = to[i] / divisor<T>(m, oy, i);
  }
}

// dst, zeroed, gets the share of each g added at every element of its window.
template <class T>
void pool_mean_back(void* dst, const void* g, const MeanWindow& m) {
  const Window& w = m.window;
  constexpr int64_t kAtOnce = 64;
  T share[kAtOnce];
  for (int64_t oy = 0; oy < w.y.out; ++oy)
    for (int64_t x0 = 0; x0 < w.x.out; x0 += kAtOnce) {
      const int64_t n = smaller(kAtOnce, w.x.out - x0);
      for (int64_t i = 0; i < n; ++i) share[i] = static_cast<const T*>(g)[oy * w.x.out + x0 + i] / divisor<T>(m, oy, x0 + i);
      each_row(w.y, oy, [&](int64_t iy) {
        T* row = static_cast<T*>(dst) + iy * w.x.in;
        for (int64_t t = 0; t < w.x.taps; ++t) {
          const TapRange tap = tap_range(w.x, t);
          const int64_t first = at_most(tap.first, x0, x0 + n), last = at_most(tap.last, x0, x0 + n);
          DVM_INDEPENDENT
          for (int64_t i = first; i < last; ++i) row[tap.at + i * w.x.stride] = row[tap.at + i * w.x.stride] + share[i - x0];
        }
      });
    }
}

}  // namespace dvm::DVM_LEVEL
