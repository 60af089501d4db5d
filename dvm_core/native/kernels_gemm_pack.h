// What register tiles read: four-byte steps of A in rows, of B in panels, made from any strides and from halves.
//
// B is packed in panels of 32 columns, [panel][step][32]; columns that do not exist stay undefined and are never read. Panel p starts at
// p * 32 * steps, so columns can be split over workers at multiples of 32. A is copied in blocks of rows into a scratch with a fixed row
// stride: constant displacements in the register tile, no 4 KB aliasing.
#pragma once
#include "kernels_gemm_tile.h"
#include "kernels_half.h"
#include "kernels_move.h"

namespace dvm::DVM_LEVEL {

// How operands become steps. Item: what is in memory; kPer: items along k in a step; of(p, s): the step that begins at p, s items apart;
// along(p): the same of neighbours; narrow: float32 sums as items.
struct FromFloat {
  using Item = float;
  using Math = Fma;
  static constexpr int kPer = 1;
  static DVM_INLINE float of(const float* p, int64_t) { return *p; }
};
template <class Half>
struct Widened {
  using Item = Half;
  using Math = Fma;
  static constexpr int kPer = 1;
  static DVM_INLINE float of(const Half* p, int64_t) { return Cast<Half, float>::of(*p); }
  static DVM_INLINE float along(const Half* p) { return Cast<Half, float>::of(*p); }
  static DVM_INLINE void narrow(Half* to, const float* from, int64_t n) { DVM_LEVEL::narrow<Half>(to, from, n); }
};
#if defined(__AVX512F__)
struct Pairs {
  using Item = Brain;
  using Math = Dot;
  static constexpr int kPer = 2;
  static DVM_INLINE float of(const Brain* p, int64_t s) { return joined(p[0].bits, p[s].bits); }
  static DVM_INLINE float along(const Brain* p) {
    uint32_t both;
    memcpy(&both, p, sizeof both);
    return bits_as<float>(both << 16 | both >> 16);
  }
  // Rounds as everything else does; sums have no denormals, which the instruction would drop.
  static DVM_INLINE void narrow(Brain* to, const float* from, int64_t n) {
    for (int64_t i = 0; i < n; i += kHalves) {
      const int64_t some = smaller<int64_t>(kHalves, n - i);
      Vf x;
      if (some == kHalves) memcpy(&x, from + i, sizeof x);
      else x = Lead(some).load(from + i);
      __m256i half;
      asm("vcvtneps2bf16 %1, %0" : "=v"(half) : "v"(x));
      half = _mm256_mask_mov_epi16(half, _mm512_cmp_ps_mask(__m512(x), __m512(x), _CMP_UNORD_Q), _mm256_set1_epi16(kBrainNan));
      store_some(to + i, Shorts(half), some);
    }
  }
  // The same of a row of sums still in registers; only `cols` of them if Edge.
  template <bool Edge, int Wide>
  static DVM_INLINE void narrow_row(Brain* to, const Vf (&sums)[Wide], int64_t cols) {
    DVM_UNROLL
    for (int v = 0; v < Wide; v += 2) {
      const __m512 low = __m512(sums[v]), high = __m512(sums[v + 1 < Wide ? v + 1 : v]);
      __m512i both;
      asm("vcvtne2ps2bf16 %2, %1, %0" : "=v"(both) : "v"(high), "v"(low));
      const __mmask32 nan = _mm512_kunpackw(_mm512_cmp_ps_mask(high, high, _CMP_UNORD_Q), _mm512_cmp_ps_mask(low, low, _CMP_UNORD_Q));
      both = _mm512_mask_mov_epi16(both, nan, _mm512_set1_epi16(kBrainNan));
      if constexpr (Edge || Wide == 1) {
        const int64_t here = smaller<int64_t>(Edge ? cols - v * kVf : kVf, Wide == 1 ? kVf : 2 * kVf);
        _mm512_mask_storeu_epi16(to + v * kVf, here >= 32 ? ~__mmask32(0) : __mmask32((uint32_t(1) << here) - 1), both);
      } else {
        memcpy(to + v * kVf, &both, sizeof both);
      }
    }
  }
  static DVM_INLINE float joined(uint32_t first, uint32_t second) { return bits_as<float>(first << 16 | second); }
};
#endif

// A last pair without a second item gets 0 on A's side and -0 on B's: their product is -0, which changes no sum.
enum class Side : uint32_t { kA = 0, kB = 0x8000 };

template <class Of, Side Which>
DVM_INLINE float last_step(const typename Of::Item* p) {
  if constexpr (Of::kPer == 1) return Of::of(p, 0);
  else return Of::joined(p->bits, uint32_t(Which));
}

template <class Of>
DVM_INLINE int64_t steps_of(int64_t k) {
  return (k + Of::kPer - 1) / Of::kPer;
}

// to[step][i] = the steps of vector i: `count` vectors `next` items apart, each of k items `along` apart.
template <class Of, Side Which>
void pack_across(float* to, int64_t to_row, const typename Of::Item* from, int64_t next, int64_t along, int64_t count, int64_t k) {
  const int64_t whole = k / Of::kPer, steps = steps_of<Of>(k);
  if (next == 1) {
    for (int64_t i = 0; i < steps; ++i) {
      const auto* p = from + i * Of::kPer * along;
      float* d = to + i * to_row;
      if (i == whole) {
        for (int64_t v = 0; v < count; ++v) d[v] = last_step<Of, Which>(p + v);
      } else if (count == kPanel) {
        DVM_INDEPENDENT
        for (int64_t v = 0; v < kPanel; ++v) d[v] = Of::of(p + v, along);
      } else {
        DVM_INDEPENDENT
        for (int64_t v = 0; v < count; ++v) d[v] = Of::of(p + v, along);
      }
    }
    return;
  }
  for (int64_t i = 0; i < steps; ++i)
    for (int64_t v = 0; v < count; ++v) {
      const auto* p = from + v * next + i * Of::kPer * along;
      to[i * to_row + v] = i == whole ? last_step<Of, Which>(p) : Of::of(p, along);
    }
}

// to[i][step] = the steps of vector i, whose k items are contiguous.
template <class Of, Side Which>
void pack_along(float* to, int64_t to_row, const typename Of::Item* from, int64_t next, int64_t count, int64_t k) {
  const int64_t whole = k / Of::kPer;
  for (int64_t v = 0; v < count; ++v, from += next, to += to_row) {
    if constexpr (sizeof(typename Of::Item) == sizeof(float)) {
      memcpy(to, from, size_t(k) * sizeof(float));
    } else {
      DVM_INDEPENDENT
      for (int64_t i = 0; i < whole; ++i) to[i] = Of::along(from + i * Of::kPer);
      if (whole * Of::kPer < k) to[whole] = last_step<Of, Which>(from + whole * Of::kPer);
    }
  }
}

// Transposes count x steps of four bytes.
inline void turn(float* to, int64_t to_row, const float* from, int64_t from_row, int64_t count, int64_t steps) {
  transpose<float>(reinterpret_cast<char*>(to), to_row * 4, reinterpret_cast<const char*>(from), from_row * 4, steps, count);
}

// A block of A: `rows` rows of k <= kSumBlock items into rows of kScratchRow steps. `spare`: kPanel x kScratchRow floats.
template <class Of>
void copy_a(float* to, float* spare, const typename Of::Item* a, int64_t a_row, int64_t a_col, int64_t rows, int64_t k) {
  if (a_col == 1) return pack_along<Of, Side::kA>(to, kScratchRow, a, a_row, rows, k);
  if constexpr (Of::kPer == 1 && sizeof(typename Of::Item) == sizeof(float))
    if (a_row == 1) {
      // A few steps at a time, all rows of them: what lies together is read together, and the next steps are on their way.
      for (int64_t i = 0; i < k; i += kWords) {
        const int64_t some = smaller<int64_t>(kWords, k - i);
        for (int64_t s = i + kWords; s < smaller<int64_t>(i + 2 * kWords, k); ++s)
          for (int64_t r = 0; r < rows; r += 16) __builtin_prefetch(a + s * a_col + r);
        turn(to + i, kScratchRow, a + i * a_col, a_col, some, rows);
      }
      return;
    }
  for (int64_t r = 0; r < rows; r += kPanel) {
    const int64_t some = smaller<int64_t>(kPanel, rows - r);
    pack_across<Of, Side::kA>(spare, kPanel, a + r * a_row, a_row, a_col, some, k);
    turn(to + r * kScratchRow, kScratchRow, spare, kPanel, steps_of<Of>(k), some);
  }
}

// One panel of B, or what there is of it, k <= kSumBlock where halves lie along k. `spare`: as above.
template <class Of>
void pack_panel(float* to, float* spare, const typename Of::Item* b, int64_t b_row, int64_t b_col, int64_t cols, int64_t k) {
  if (b_row != 1 || b_col == 1) return pack_across<Of, Side::kB>(to, kPanel, b, b_col, b_row, cols, k);
  if constexpr (sizeof(typename Of::Item) == sizeof(float)) return turn(to, kPanel, b, b_col, cols, k);
  else {
    pack_along<Of, Side::kB>(spare, kScratchRow, b, b_col, cols, k);
    turn(to, kPanel, spare, kScratchRow, cols, steps_of<Of>(k));
  }
}

// All panels of B. Blocks of k are packed one after the other: each begins at a whole step.
template <class Of>
void pack_panels(float* to, float* spare, const typename Of::Item* b, int64_t b_row, int64_t b_col, int64_t k, int64_t n) {
  for (int64_t j = 0; j < n; j += kPanel, to += steps_of<Of>(k) * kPanel)
    for (int64_t k0 = 0; k0 < k; k0 += kSumBlock)
      pack_panel<Of>(to + k0 / Of::kPer * kPanel, spare, b + k0 * b_row + j * b_col, b_row, b_col, smaller<int64_t>(kPanel, n - j), smaller(kSumBlock, k - k0));
}

}  // namespace dvm::DVM_LEVEL
