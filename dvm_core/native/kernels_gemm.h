// Matrix product in float32 with packed B, and the plain form for the other dtypes.
//
// B is packed in panels of 32 columns, [panel][k][32], the last panel filled up with zeros: a panel is read front to back, once per
// micro-tile of rows. Panel p starts at p * 32 * k, so columns can be split over workers at multiples of 32 and packed in parallel.
// A is copied in blocks of rows into a scratch with a fixed row stride (constant displacements in the micro-kernel, no 4 KB aliasing,
// any strides of A). Every element of c is one sum over k in order, in blocks of 512 joined through memory; how rows and columns
// are grouped never changes a bit. The sums are fused multiply-adds at every level but baseline x86, which has no such instruction:
// there product and sum are rounded apart.
#pragma once
#include <cstdlib>

#include "kernels_move.h"
#include "kernels_reduce.h"

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

namespace dvm::DVM_LEVEL {

inline constexpr int kPanel = 32;
inline constexpr int64_t kBlockK = 512;
inline constexpr int64_t kBlockM = 168;
inline constexpr int64_t kScratchRow = kBlockK + 16;

using Vf = LaneVector<float>::type;
inline constexpr int kVf = kLaneBytes<float> / 4;

DVM_INLINE Vf multiply_add(Vf a, Vf b, Vf c) {
#if defined(__AVX512F__)
  return Vf(_mm512_fmadd_ps(__m512(a), __m512(b), __m512(c)));
#elif defined(__FMA__)
  return Vf(_mm256_fmadd_ps(__m256(a), __m256(b), __m256(c)));
#elif defined(__ARM_NEON)
  return Vf(vfmaq_f32(float32x4_t(c), float32x4_t(a), float32x4_t(b)));
#else
  return c + a * b;
#endif
}

// Register tile: rows x (kTileVectors vectors). 14 x 2 (and 2 of B, 1 of A) of AVX-512's 32 registers, 6 x 2 of the 16 of AVX2 and SSE.
#if defined(__AVX512F__)
inline constexpr int kTileRows = 14, kTileVectors = 2;
#elif defined(__ARM_NEON)
inline constexpr int kTileRows = 6, kTileVectors = 4;
#else
inline constexpr int kTileRows = 6, kTileVectors = 2;
#endif

// Rows x (Panels panels, Vectors vectors of each) of c. `add`: c holds the sum over earlier blocks of k. `cols`: columns that exist.
template <int Rows, int Vectors, int Panels>
void micro_tile(const float* a, const float* b, int64_t panel_stride, int64_t k, float* c, int64_t ldc, bool add, int64_t cols) {
  constexpr int kWide = Vectors * Panels;
  Vf acc[Rows][kWide];
  DVM_UNROLL
  for (int r = 0; r < Rows; ++r) {
    DVM_UNROLL
    for (int v = 0; v < kWide; ++v) acc[r][v] = Vf{};
  }
  for (int64_t i = 0; i < k; ++i) {
    Vf bv[kWide];
    // Sixteen rows ahead, line by line: panels beyond the second-level cache stream up to 10 % faster, nearer ones lose nothing.
    DVM_UNROLL
    for (int p = 0; p < Panels; ++p) {
      const float* row = b + p * panel_stride + i * kPanel;
      DVM_UNROLL
      for (int v = 0; v < Vectors; v += 64 / int(sizeof(Vf))) __builtin_prefetch(row + 16 * kPanel + v * kVf);
      DVM_UNROLL
      for (int v = 0; v < Vectors; ++v) memcpy(&bv[p * Vectors + v], row + v * kVf, sizeof(Vf));
    }
    DVM_UNROLL
    for (int r = 0; r < Rows; ++r) {
      const Vf av = a[r * kScratchRow + i] - Vf{};  // x - 0 is x: a plain broadcast
      DVM_UNROLL
      for (int v = 0; v < kWide; ++v) acc[r][v] = multiply_add(av, bv[v], acc[r][v]);
    }
  }
  if (cols >= kWide * kVf) {
    DVM_UNROLL
    for (int r = 0; r < Rows; ++r) {
      DVM_UNROLL
      for (int v = 0; v < kWide; ++v) {
        float* to = c + r * ldc + v * kVf;
        if (add) {
          Vf earlier;
          memcpy(&earlier, to, sizeof(Vf));
          acc[r][v] = earlier + acc[r][v];
        }
        memcpy(to, &acc[r][v], sizeof(Vf));
      }
    }
    return;
  }
  DVM_UNROLL
  for (int r = 0; r < Rows; ++r) {
    float row[kWide * kVf];
    DVM_UNROLL
    for (int v = 0; v < kWide; ++v) memcpy(row + v * kVf, &acc[r][v], sizeof(Vf));
    for (int64_t j = 0; j < cols; ++j) c[r * ldc + j] = add ? c[r * ldc + j] + row[j] : row[j];
  }
}

using MicroTile = void (*)(const float*, const float*, int64_t, int64_t, float*, int64_t, bool, int64_t);

// Micro-tiles of 1 .. N rows, by rows - 1.
template <int Vectors, int Panels, int N, int... Rows>
struct Tiles : Tiles<Vectors, Panels, N - 1, N, Rows...> {};
template <int Vectors, int Panels, int... Rows>
struct Tiles<Vectors, Panels, 0, Rows...> {
  static constexpr MicroTile of_rows[] = {micro_tile<Rows, Vectors, Panels>...};
};

// A's rows are copied here; one block per thread, freed when the thread ends.
struct Scratch {
  float* data = nullptr;
  ~Scratch() { free(data); }
  float* get() {
    if (!data) data = static_cast<float*>(aligned_alloc(64, size_t(kBlockM * kScratchRow) * sizeof(float)));
    if (!data) abort();
    return data;
  }
};

DVM_INLINE void copy_a(float* to, const float* a, int64_t a_row, int64_t a_col, int64_t rows, int64_t k) {
  if (a_col == 1) {
    for (int64_t r = 0; r < rows; ++r) memcpy(to + r * kScratchRow, a + r * a_row, size_t(k) * sizeof(float));
    return;
  }
  if (a_row == 1) return transpose<float>(reinterpret_cast<char*>(to), kScratchRow * 4, reinterpret_cast<const char*>(a), a_col * 4, rows, k);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < k; ++i) to[r * kScratchRow + i] = a[r * a_row + i * a_col];
}

// All columns of one block of rows, in stripes of Vectors x Panels.
template <int Vectors, int Panels, int MaxRows>
void gemm_block(const GemmArgs& g, const float* a, int64_t row, int64_t rows, int64_t k0, int64_t k, bool add) {
  constexpr int64_t kWidth = Panels > 1 ? Panels * kPanel : Vectors * kVf;
  const int64_t tiles = (rows + MaxRows - 1) / MaxRows;
  const int64_t panel_stride = g.k * kPanel;
  for (int64_t j = 0; j < g.n; j += kWidth) {
    const float* b = g.b_packed + (j / kPanel) * panel_stride + k0 * kPanel + j % kPanel;
    // Panels past the last one are not there: read the last again, its columns are not stored.
    const int64_t last = (g.n - 1) / kPanel - j / kPanel;
    for (int64_t t = 0, r = 0; t < tiles; ++t) {
      const int64_t some = (rows - r + tiles - t - 1) / (tiles - t);  // equal tiles, never 14 + 1
      float* c = g.c + (row + r) * g.ldc + j;
      if (last >= Panels - 1) Tiles<Vectors, Panels, MaxRows>::of_rows[some - 1](a + r * kScratchRow, b, panel_stride, k, c, g.ldc, add, g.n - j);
      else
        for (int64_t p = 0; p <= last; ++p)
          Tiles<Vectors, 1, MaxRows>::of_rows[some - 1](a + r * kScratchRow, b + p * panel_stride, panel_stride, k, c + p * kPanel, g.ldc, add,
                                                        g.n - j - p * kPanel);
      r += some;
    }
  }
}

inline void gemm(const GemmArgs& g) {
  if (g.m <= 0 || g.n <= 0) return;
  if (g.k <= 0) {
    for (int64_t r = 0; r < g.m && !g.add; ++r) memset(g.c + r * g.ldc, 0, size_t(g.n) * sizeof(float));
    return;
  }
  static thread_local Scratch scratch;
  float* a = scratch.get();
  constexpr int kPanelVectors = kPanel / kVf;
  for (int64_t k0 = 0; k0 < g.k; k0 += kBlockK) {
    const int64_t k = smaller(kBlockK, g.k - k0);
    const bool add = g.add || k0 > 0;
    for (int64_t row = 0; row < g.m; row += kBlockM) {
      const int64_t rows = smaller(kBlockM, g.m - row);
      copy_a(a, g.a + row * g.a_row + k0 * g.a_col, g.a_row, g.a_col, rows, k);
      // Few rows: wide tiles, or the additions would wait for each other.
      if (rows == 1) gemm_block<kPanelVectors, 8 / kPanelVectors, 1>(g, a, row, rows, k0, k, add);
      else if (kVf == 16 && rows <= 6) gemm_block<kPanelVectors, 2, 6>(g, a, row, rows, k0, k, add);
      else gemm_block<kTileVectors, 1, kTileRows>(g, a, row, rows, k0, k, add);
    }
  }
}

inline size_t packed_b_bytes(int64_t k, int64_t n) { return size_t((n + kPanel - 1) / kPanel) * size_t(kPanel) * size_t(k) * sizeof(float); }

inline void pack_b(float* dst, const float* b, int64_t b_row, int64_t b_col, int64_t k, int64_t n) {
  for (int64_t j = 0; j < n; j += kPanel, dst += k * kPanel) {
    const int64_t cols = smaller(int64_t(kPanel), n - j);
    const float* from = b + j * b_col;
    if (cols < kPanel) memset(dst, 0, size_t(k * kPanel) * sizeof(float));
    if (b_col == 1 && cols == kPanel) {
      for (int64_t i = 0; i < k; ++i) memcpy(dst + i * kPanel, from + i * b_row, kPanel * sizeof(float));
    } else if (b_row == 1) {
      transpose<float>(reinterpret_cast<char*>(dst), kPanel * 4, reinterpret_cast<const char*>(from), b_col * 4, k, cols);
    } else {
      for (int64_t i = 0; i < k; ++i)
        for (int64_t c = 0; c < cols; ++c) dst[i * kPanel + c] = from[i * b_row + c * b_col];
    }
  }
}

// A bool byte: the sum of products is `any`.
struct Truth {
  uint8_t byte;
  explicit Truth(int) : byte(0) {}
  DVM_INLINE Truth operator+(Truth o) const { return with((byte | o.byte) != 0); }
  DVM_INLINE Truth operator*(Truth o) const { return with((byte != 0) & (o.byte != 0)); }
  static DVM_INLINE Truth with(uint8_t value) {
    Truth t(0);
    t.byte = value;
    return t;
  }
};

// Dtypes without a micro-kernel: c = a @ b, each element one sum over k in order, product and sum rounded apart (integers wrap).
template <class T>
void gemm_plain(void* c, const void* a, const void* b, int64_t m, int64_t n, int64_t k, int64_t a_row, int64_t a_col, int64_t b_row, int64_t b_col,
                int64_t ldc) {
  auto* x = static_cast<const T*>(a);
  auto* y = static_cast<const T*>(b);
  for (int64_t r = 0; r < m; ++r) {
    T* out = static_cast<T*>(c) + r * ldc;
    for (int64_t j = 0; j < n; ++j) out[j] = T(0);
    if (b_col == 1) {
      for (int64_t i = 0; i < k; ++i) {
        const T f = x[r * a_row + i * a_col];
        const T* row = y + i * b_row;
        DVM_INDEPENDENT
        for (int64_t j = 0; j < n; ++j) out[j] = T(out[j] + T(f * row[j]));
      }
    } else {
      for (int64_t j = 0; j < n; ++j) {
        T sum = T(0);
        for (int64_t i = 0; i < k; ++i) sum = T(sum + T(x[r * a_row + i * a_col] * y[i * b_row + j * b_col]));
        out[j] = sum;
      }
    }
  }
}

inline void gemm_generic(void* c, const void* a, const void* b, int64_t m, int64_t n, int64_t k, int64_t a_row, int64_t a_col, int64_t b_row, int64_t b_col,
                         int64_t ldc, DType dtype) {
  switch (dtype) {
    case DType::kF32: return gemm_plain<float>(c, a, b, m, n, k, a_row, a_col, b_row, b_col, ldc);
    case DType::kF64: return gemm_plain<double>(c, a, b, m, n, k, a_row, a_col, b_row, b_col, ldc);
    case DType::kI32: return gemm_plain<uint32_t>(c, a, b, m, n, k, a_row, a_col, b_row, b_col, ldc);
    case DType::kI64: return gemm_plain<uint64_t>(c, a, b, m, n, k, a_row, a_col, b_row, b_col, ldc);
    case DType::kI8:
    case DType::kU8: return gemm_plain<uint8_t>(c, a, b, m, n, k, a_row, a_col, b_row, b_col, ldc);
    case DType::kBool: return gemm_plain<Truth>(c, a, b, m, n, k, a_row, a_col, b_row, b_col, ldc);
    default: return;
  }
}

}  // namespace dvm::DVM_LEVEL
