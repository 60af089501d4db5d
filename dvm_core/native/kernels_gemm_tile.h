// Register tiles of a matrix product: Rows x Wide vectors of c, summed over k in order.
#pragma once
#include "kernels_move.h"
#include "kernels_reduce.h"

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

namespace dvm::DVM_LEVEL {

inline constexpr int kPanel = 32;              // columns that B is packed by
inline constexpr int64_t kScratchRow = kSumBlock + 16;

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

DVM_INLINE Vf splat(float x) {
#if defined(__AVX512F__)
  return Vf(_mm512_set1_ps(x));  // of any four bytes, pairs of bfloat16 as well
#else
  return x - Vf{};  // x - 0 is x: a plain broadcast
#endif
}

// The step of a sum over k: one float32 of a and b, or (Dot) a pair of bfloat16 in the same four bytes, the earlier one in the upper half.
struct Fma {
  static DVM_INLINE Vf of(Vf a, Vf b, Vf c) { return multiply_add(a, b, c); }
};
#if defined(__AVX512F__)
struct Dot {
  // Adds the product of the upper halves, then that of the lower halves. Written as assembly: the level does not promise AVX512_BF16, which
  // gemm() looks for.
  static DVM_INLINE Vf of(Vf a, Vf b, Vf c) {
    asm("vdpbf16ps %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
    return c;
  }
};
#endif

// The first `n` lanes, and no byte beyond them.
struct Lead {
#if defined(__AVX512F__)
  __mmask16 mask;
  DVM_INLINE explicit Lead(int64_t n) : mask(n >= 16 ? 0xffff : __mmask16((1u << (n < 0 ? 0 : n)) - 1)) {}
  DVM_INLINE Vf load(const float* p) const { return Vf(_mm512_maskz_loadu_ps(mask, p)); }
  DVM_INLINE void store(float* p, Vf x) const { _mm512_mask_storeu_ps(p, mask, __m512(x)); }
#elif defined(__AVX2__)
  int64_t n;
  __m256i mask;
  DVM_INLINE explicit Lead(int64_t lanes) : n(lanes < 0 ? 0 : smaller<int64_t>(lanes, 8)), mask(first_lanes(n)) {}
  DVM_INLINE Vf load(const float* p) const { return Vf(_mm256_maskload_ps(p, mask)); }
  DVM_INLINE void store(float* p, Vf x) const { store_some_floats(p, x, n); }
#else
  int64_t n;
  DVM_INLINE explicit Lead(int64_t lanes) : n(lanes < 0 ? 0 : smaller<int64_t>(lanes, kVf)) {}
  DVM_INLINE Vf load(const float* p) const {
    Vf x{};
    for (int64_t i = 0; i < n; ++i) x[i] = p[i];
    return x;
  }
  DVM_INLINE void store(float* p, Vf x) const {
    for (int64_t i = 0; i < n; ++i) p[i] = x[i];
  }
#endif
};

// Columns of b, beginning at the tile's first: column j of row i at at[j / kPanel * panel + j % kPanel + i * row].
struct Columns {
  const float* at;
  int64_t panel, row;
  int64_t ahead;  // floats from a row to the one to be fetched with it, 0: none
};

// Rows of b as a tile walks over them: panels, or rows that lie one after the other.
struct PanelRows {
  const float* row;
  int64_t panel, step, ahead;
  DVM_INLINE explicit PanelRows(const Columns& b) : row(b.at), panel(b.panel), step(b.row), ahead(b.ahead) {}
  // Vector v of the row after u others.
  DVM_INLINE const float* at(int u, int v) const { return row + u * step + v * kVf / kPanel * panel + v * kVf % kPanel; }
  // Some rows ahead, line by line: panels beyond the second-level cache stream up to 10 % faster.
  template <int Steps, int Wide>
  DVM_INLINE void fetch() const {
    if (!ahead) return;
    DVM_UNROLL
    for (int u = 0; u < Steps; ++u) {
      DVM_UNROLL
      for (int v = 0; v < Wide; ++v)
        if (v * int(sizeof(Vf)) % 64 == 0) __builtin_prefetch(at(u, v) + ahead);
    }
  }
  DVM_INLINE void next(int steps) { row += steps * step; }
};

// Steps of k between two looks at the loop's end. Two threads of a core share what it decodes: a tile of AVX2 then takes as long as its
// instructions are many, and what goes round with each step is a fifth of them.
#if defined(__AVX512F__)
inline constexpr int kStepsAtOnce = 1;
#else
inline constexpr int kStepsAtOnce = 4;
#endif

// The next Steps steps of a tile's sums, in order; `a`: the first of them of row 0.
template <class Math, bool Edge, int Steps, int Rows, int Wide, class RowsOfB>
DVM_INLINE void sum_steps(Vf (&acc)[Rows][Wide], const float* a, const RowsOfB& b, const Lead (&lead)[2]) {
  b.template fetch<Steps, Wide>();
  DVM_UNROLL
  for (int u = 0; u < Steps; ++u) {
    Vf bv[Wide];
    DVM_UNROLL
    for (int v = 0; v < Wide; ++v) {
      const float* from = b.at(u, v);
      if constexpr (Edge) bv[v] = lead[v].load(from);
      else memcpy(&bv[v], from, sizeof(Vf));
    }
    DVM_UNROLL
    for (int r = 0; r < Rows; ++r) {
      const Vf av = splat(a[r * kScratchRow + u]);
      DVM_UNROLL
      for (int v = 0; v < Wide; ++v) acc[r][v] = Math::of(av, bv[v], acc[r][v]);
    }
  }
}

// Edge: only `cols` columns exist, else all of them.
template <class Math, bool Edge, int Rows, int Wide, class RowsOfB>
DVM_INLINE void sum_tile(Vf (&acc)[Rows][Wide], const float* a, RowsOfB b, int64_t k, const Lead (&lead)[2]) {
  DVM_UNROLL
  for (int r = 0; r < Rows; ++r) {
    DVM_UNROLL
    for (int v = 0; v < Wide; ++v) acc[r][v] = Vf{};
  }
  int64_t i = 0;
  for (; i + kStepsAtOnce <= k; i += kStepsAtOnce, b.next(kStepsAtOnce)) sum_steps<Math, Edge, kStepsAtOnce>(acc, a + i, b, lead);
  for (; i < k; ++i, b.next(1)) sum_steps<Math, Edge, 1>(acc, a + i, b, lead);
}

// `add`: c holds the sum over earlier blocks of k.
template <class Math, bool Edge, int Rows, int Wide, class RowsOfB>
DVM_INLINE void tile_to_memory(const float* a, const RowsOfB& b, int64_t k, float* c, int64_t ldc, bool add, int64_t cols) {
  Vf acc[Rows][Wide];
  const Lead lead[2] = {Lead(cols), Lead(cols - kVf)};
  sum_tile<Math, Edge>(acc, a, b, k, lead);
  DVM_UNROLL
  for (int r = 0; r < Rows; ++r) {
    DVM_UNROLL
    for (int v = 0; v < Wide; ++v) {
      float* to = c + r * ldc + v * kVf;
      if constexpr (Edge) {
        lead[v].store(to, add ? lead[v].load(to) + acc[r][v] : acc[r][v]);
      } else {
        if (add) {
          Vf earlier;
          memcpy(&earlier, to, sizeof(Vf));
          acc[r][v] = earlier + acc[r][v];
        }
        memcpy(to, &acc[r][v], sizeof(Vf));
      }
    }
  }
}

template <class Math, bool Edge, int Rows, int Wide>
void micro_tile(const float* a, const Columns& b, int64_t k, float* c, int64_t ldc, bool add, int64_t cols) {
  tile_to_memory<Math, Edge, Rows, Wide>(a, PanelRows(b), k, c, ldc, add, cols);
}

// The same sums for Rows rows and Wide vectors of columns that lie along k, `column` floats apart: turned in registers, since a few rows do not
// pay for panels. Edge: only `cols` columns exist, which end in the last vector; its other lanes repeat the last of them.
//
// kAlongRows: up to so many. kAlongPairs: up to so many take two vectors at a time, whose lanes' additions would wait for each other in one.
// Columns that are a multiple of kAliased apart share few lines of the first-level cache, which two vectors would overfill.
#if defined(__AVX512F__)
inline constexpr int kAlongRows = 6, kAlongPairs = 6;
inline constexpr int64_t kAliased = 0;
#elif defined(__AVX2__)
inline constexpr int kAlongRows = 8, kAlongPairs = 2;
inline constexpr int64_t kAliased = 1024;
#else
inline constexpr int kAlongRows = 2, kAlongPairs = 2;
inline constexpr int64_t kAliased = 0;
#endif

template <bool Edge, int Rows, int Wide>
void tile_along(const float* a, const float* b, int64_t column, int64_t k, float* c, int64_t ldc, bool add, int64_t cols) {
  static_assert(kVf == kWords);
  constexpr int kLast = Wide - 1, kNear = 16 / kVf;  // so many steps of kVf are a line: it is read to its end before others take its place
  int64_t lane[kVf];
  for (int x = 0; x < kVf; ++x) lane[x] = smaller<int64_t>(kLast * kVf + x, cols - 1) * column;
  Vf acc[Wide][Rows] = {};
  // Vector s of the columns, kVf steps from `at` on.
  const auto turned = [&](Words(&q)[kVf], int s, int64_t at) {
    if (Edge && s == kLast) turn_words(q, [&](int x) { return reinterpret_cast<const char*>(b + lane[x] + at); });
    else turn_words(q, [&](int x) { return reinterpret_cast<const char*>(b + (s * kVf + x) * column + at); });
  };
  const auto steps = [&](int s, int64_t at) {
    Words q[kVf];
    turned(q, s, at);
    DVM_UNROLL
    for (int x = 0; x < kVf; ++x) {
      DVM_UNROLL
      for (int r = 0; r < Rows; ++r) acc[s][r] = multiply_add(splat(a[r * kScratchRow + at + x]), Vf(q[x]), acc[s][r]);
    }
  };
  int64_t i = 0;
  for (; i + kNear * kVf <= k; i += kNear * kVf) {
    DVM_UNROLL
    for (int s = 0; s < Wide; ++s) {
      DVM_UNROLL
      for (int half = 0; half < kNear; ++half) steps(s, i + half * kVf);
    }
  }
  for (; i + kVf <= k; i += kVf) {  // up to kNear - 1 of them
    DVM_UNROLL
    for (int s = 0; s < Wide; ++s) steps(s, i);
  }
  if (i < k) {
    DVM_UNROLL
    for (int s = 0; s < Wide; ++s) {
      Words q[kVf];
      const int64_t from = k - kVf;  // steps before i are turned once more
      if (from >= 0) {
        turned(q, s, from);
      } else {
        const int64_t last = Edge && s == kLast ? cols - 1 - s * kVf : kVf - 1;
        for (int64_t x = 0; x < k; ++x)
          for (int64_t v = 0; v < kVf; ++v) q[x - from][v] = bits_as<uint32_t>(b[(s * kVf + smaller(v, last)) * column + x]);
      }
      for (int64_t x = i; x < k; ++x) {
        DVM_UNROLL
        for (int r = 0; r < Rows; ++r) acc[s][r] = multiply_add(splat(a[r * kScratchRow + x]), Vf(q[x - from]), acc[s][r]);
      }
    }
  }
  const Lead lead(cols - kLast * kVf);
  DVM_UNROLL
  for (int s = 0; s < Wide; ++s) {
    DVM_UNROLL
    for (int r = 0; r < Rows; ++r) {
      float* to = c + r * ldc + s * kVf;
      if (Edge && s == kLast) {
        lead.store(to, add ? lead.load(to) + acc[s][r] : acc[s][r]);
      } else {
        Vf earlier{};
        if (add) memcpy(&earlier, to, sizeof(Vf));
        const Vf sum = add ? earlier + acc[s][r] : acc[s][r];
        memcpy(to, &sum, sizeof(Vf));
      }
    }
  }
}

using AlongTile = void (*)(const float*, const float*, int64_t, int64_t, float*, int64_t, bool, int64_t);

// By rows - 1.
template <bool Edge, int Wide, int N, int... Rows>
struct AlongTiles : AlongTiles<Edge, Wide, N - 1, N, Rows...> {};
template <bool Edge, int Wide, int... Rows>
struct AlongTiles<Edge, Wide, 0, Rows...> {
  static constexpr AlongTile of_rows[] = {tile_along<Edge, Rows, Wide>...};
};

using MicroTile = void (*)(const float*, const Columns&, int64_t, float*, int64_t, bool, int64_t);

// Micro-tiles of 1 .. N rows, by rows - 1.
template <class Math, bool Edge, int Wide, int N, int... Rows>
struct Tiles : Tiles<Math, Edge, Wide, N - 1, N, Rows...> {};
template <class Math, bool Edge, int Wide, int... Rows>
struct Tiles<Math, Edge, Wide, 0, Rows...> {
  static constexpr MicroTile of_rows[] = {micro_tile<Math, Edge, Rows, Wide>...};
};

}  // namespace dvm::DVM_LEVEL
