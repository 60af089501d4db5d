// Convolutions without packing: rows of the window matrix are shifted rows of padded planes.
#pragma once
#include "kernels_window.h"

namespace dvm::DVM_LEVEL {

inline void plane_rows(float* dst, const float* src, const Window& w, const PlaneRows& p) {
  const WindowAxis& y = w.y;
  WindowAxis x = w.x;
  x.out = p.pitch;
  for (int64_t c = p.channel; c < p.channel + p.channels; ++c)
    for (int64_t a = 0; a < p.count_y; ++a)
      for (int64_t b = 0; b < p.count_x; ++b, dst += p.plane) {
        const TapRange range = range_from(x, p.phases_x[b] - x.before);
        float* to = dst;
        for (int64_t i = 0; i < p.rows; ++i, to += p.pitch) {
          const int64_t position = (p.first_row + i) * y.stride + p.phases_y[a] - y.before;
          if (position < 0 || position > (y.in - 1) * y.gap || (y.gap > 1 && position % y.gap)) {
            for (int64_t j = 0; j < p.pitch; ++j) to[j] = 0;
          } else {
            window_run(to, src + c * w.channel + position / y.gap * w.row, w.col, x, range, 0, p.pitch);
          }
        }
      }
}

// Rows of b that begin anywhere.
struct OffsetRows {
  const float* b;
  const int32_t* offset;
  DVM_INLINE const float* at(int u, int v) const { return b + offset[u] + v * kVf; }
  template <int Steps, int Wide>
  DVM_INLINE void fetch() const {}
  DVM_INLINE void next(int steps) { offset += steps; }
};
template <bool Edge, int Rows, int Wide>
void offset_tile(const float* a, const float* b, const int32_t* offsets, int64_t k, float* c, int64_t ldc, bool add, int64_t cols) {
  tile_to_memory<Fma, Edge, Rows, Wide>(a, OffsetRows{b, offsets}, k, c, ldc, add, cols);
}

using OffsetTile = void (*)(const float*, const float*, const int32_t*, int64_t, float*, int64_t, bool, int64_t);
template <bool Edge, int Wide, int N, int... Rows>
struct OffsetTiles : OffsetTiles<Edge, Wide, N - 1, N, Rows...> {};
template <bool Edge, int Wide, int... Rows>
struct OffsetTiles<Edge, Wide, 0, Rows...> {
  static constexpr OffsetTile of_rows[] = {offset_tile<Edge, Rows, Wide>...};
};

template <bool Edge, int Wide, int MaxRows>
void offset_stripe(const OffsetProduct& p, const float* a, int64_t row, int64_t rows, int64_t j, int64_t cols) {
  const int64_t tiles = (rows + MaxRows - 1) / MaxRows;
  for (int64_t t = 0, r = 0; t < tiles; ++t) {
    const int64_t some = (rows - r + tiles - t - 1) / (tiles - t);
    OffsetTiles<Edge, Wide, MaxRows>::of_rows[some - 1](a + r * kScratchRow, p.b + j, p.offsets, p.k, p.c + (row + r) * p.ldc + j, p.ldc, p.add, cols);
    r += some;
  }
}
template <int Wide, int MaxRows>
int64_t offset_stripes(const OffsetProduct& p, const float* a, int64_t row, int64_t rows, int64_t j) {
  for (; p.n - j >= Wide * kVf; j += Wide * kVf) offset_stripe<false, Wide, MaxRows>(p, a, row, rows, j, Wide * kVf);
  return j;
}

inline void offset_product(const OffsetProduct& p) {
  float* a = scratch().a();
  for (int64_t row = 0; row < p.m; row += kBlockM) {
    const int64_t rows = smaller(kBlockM, p.m - row);
    for (int64_t r = 0; r < rows; ++r) memcpy(a + r * kScratchRow, p.a + (row + r) * p.a_row, size_t(p.k) * sizeof(float));
    int64_t j = 0;
    if (rows == 1) j = offset_stripes<kOneWide, 1>(p, a, row, rows, j);
    if (rows <= kPairRows) j = offset_stripes<kPairWide, kPairRows>(p, a, row, rows, j);
    if (rows <= kFewRows) j = offset_stripes<kFewWide, kFewRows>(p, a, row, rows, j);
    j = offset_stripes<kTileWide, kTileRows>(p, a, row, rows, j);
    for (; p.n - j > kVf; j += 2 * kVf) offset_stripe<true, 2, kTileRows>(p, a, row, rows, j, smaller<int64_t>(2 * kVf, p.n - j));
    if (j < p.n) offset_stripe<true, 1, kTileRows>(p, a, row, rows, j, p.n - j);
  }
}

}  // namespace dvm::DVM_LEVEL
