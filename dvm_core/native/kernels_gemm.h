// Matrix product: float32 sums over float32 or halves, and the plain form for the other dtypes.
//
// Every element of c is one sum over k in order, in blocks of 512 joined through memory; how rows and columns are grouped, and whether B was
// packed, never changes a bit. The sums are fused multiply-adds at every level but baseline x86, which has no such instruction: there product
// and sum are rounded apart. Sums over bfloat16 take denormals for zero and give zero for them, as the processor's own instruction does.
#pragma once
#include <cstdlib>

#include "kernels_gemm_pack.h"
#include "kernels_gemm_zeros.h"

namespace dvm::DVM_LEVEL {

inline constexpr int64_t kNearRow = 4096, kNearHalves = 1024;  // bytes of a row of the result, above which its lines are fetched ahead
inline constexpr int64_t kShortSum = 64;  // of halves: the result is most of the memory, and long rows of it are written one register tile after the other
inline constexpr int kStripePanels = 8;  // of B, packed on the way
// Float32 rows of B that are farther apart than kFarRow are packed on the way if so many rows of A pay for it: a tile of AVX2 takes one line of
// each, so that neither the lines of a stripe nor their pages stay near from tile to tile.
#if defined(__AVX2__) && !defined(__AVX512F__)
inline constexpr int64_t kPackingRows = 48, kFarRow = 128;
#else
inline constexpr int64_t kPackingRows = kBlockM + 1, kFarRow = 0;
#endif

// Register tiles by rows: few rows are wide, or the additions would wait for each other and B would come in short runs. AVX-512 has 32
// registers (14 x 2 sums, 2 of B, 1 of A), AVX2 and SSE have 16.
#if defined(__AVX512F__)
inline constexpr int kTileRows = 14, kTileWide = 2, kFewRows = 6, kFewWide = 4, kPairRows = 3, kPairWide = 8, kOneWide = 16;
#elif defined(__ARM_NEON)
inline constexpr int kTileRows = 6, kTileWide = 4, kFewRows = 6, kFewWide = 4, kPairRows = 3, kPairWide = 8, kOneWide = 16;
#else
inline constexpr int kTileRows = 6, kTileWide = 2, kFewRows = 2, kFewWide = 4, kPairRows = 2, kPairWide = 4, kOneWide = 8;
#endif

// Per thread, freed when it ends: rows of A, panels of B, and room for turning.
struct Scratch {
  static constexpr int64_t kA = kBlockM * kScratchRow, kB = kStripePanels * kSumBlock * kPanel, kSpare = kPanel * kScratchRow;
  float* data = nullptr;
  ~Scratch() { free(data); }
  float* a() {
    if (!data) data = static_cast<float*>(aligned_alloc(64, size_t(kA + kB + kSpare) * sizeof(float)));
    if (!data) abort();
    return data;
  }
  float* b() { return a() + kA; }
  float* spare() { return a() + kA + kB; }
};

inline Scratch& scratch() {
  static thread_local Scratch s;
  return s;
}

// Denormals are zero while this lives.
struct FlushDenormals {
#if defined(__x86_64__)
  unsigned saved = __builtin_ia32_stmxcsr();
  FlushDenormals() { __builtin_ia32_ldmxcsr(saved | 0x8040); }
  ~FlushDenormals() { __builtin_ia32_ldmxcsr(saved); }
#elif defined(__aarch64__)
  uint64_t saved;
  FlushDenormals() {
    asm volatile("mrs %0, fpcr" : "=r"(saved));
    asm volatile("msr fpcr, %0" : : "r"(saved | uint64_t(1) << 24));
  }
  ~FlushDenormals() { asm volatile("msr fpcr, %0" : : "r"(saved)); }
#endif
};

#if defined(__AVX512F__)
// A tile of pairs whose sums are complete, rounded before they leave the registers.
template <bool Edge, int Rows, int Wide>
void rounded_tile(const float* a, const Columns& b, int64_t k, Brain* to, int64_t to_row, int64_t cols) {
  Vf acc[Rows][Wide];
  const Lead lead[2] = {Lead(cols), Lead(cols - kVf)};
  sum_tile<Dot, Edge>(acc, a, PanelRows(b), k, lead);
  DVM_UNROLL
  for (int r = 0; r < Rows; ++r) Pairs::narrow_row<Edge>(to + r * to_row, acc[r], cols);
}
template <bool Edge, int Wide, int N, int... Rows>
struct RoundedTiles : RoundedTiles<Edge, Wide, N - 1, N, Rows...> {};
template <bool Edge, int Wide, int... Rows>
struct RoundedTiles<Edge, Wide, 0, Rows...> {
  static constexpr void (*of_rows[])(const float*, const Columns&, int64_t, Brain*, int64_t, int64_t) = {rounded_tile<Edge, Rows, Wide>...};
};
#endif

// One block of rows and of k, all columns.
template <class Of>
struct Block {
  using Item = typename Of::Item;
  const GemmArgs& g;
  Scratch& s;
  int64_t row, rows, k0, k;
  int64_t packed_from = 0, packed_until = 0;  // columns in the scratch
  ZeroEnds zeros{};

  // Columns [j, j + count) of B. Packed before, or read where they lie, or packed now.
  Columns columns(int64_t j, int64_t count) {
    const int64_t steps = steps_of<Of>(g.k);
    if (g.b_packed)
      return {static_cast<const float*>(g.b_packed) + (j / kPanel * steps + k0 / Of::kPer) * kPanel + j % kPanel, steps * kPanel, kPanel, 16 * kPanel};
    const auto* b = static_cast<const Item*>(g.b) + k0 * g.b_row;
    if constexpr (sizeof(Item) == sizeof(float))
      if (g.b_col == 1 && (rows < kPackingRows || g.b_row <= kFarRow)) return {b + j, kPanel, g.b_row, 4 * g.b_row};
    constexpr int64_t kStride = kSumBlock * kPanel;
    if (j >= packed_until) {
      packed_from = j;
      packed_until = smaller(g.n, j + (count + kPanel - 1) / kPanel * kPanel);
      for (int64_t p = j, at = 0; p < packed_until; p += kPanel, at += kStride)
        pack_panel<Of>(s.b() + at, s.spare(), b + p * g.b_col, g.b_row, g.b_col, smaller<int64_t>(kPanel, packed_until - p), k);
    }
    const int64_t in = j - packed_from;
    return {s.b() + in / kPanel * kStride + in % kPanel, kStride, kPanel, 16 * kPanel};
  }

  template <bool Edge, int Wide, int MaxRows>
  void stripe(int64_t j, int64_t cols) {
    const Columns b = columns(j, cols);
    const bool add = g.add || k0 > 0, round = g.half && k0 + k == g.k;
    constexpr int64_t kWidth = Wide * kVf;
    alignas(64) float rounded[MaxRows * kWidth];
    const int64_t item = round ? 2 : 4, out_row = (round ? g.half_row : g.ldc) * item, out_bytes = kWidth * item;
    const char* ahead =
        out_row <= (round ? kNearHalves : kNearRow) ? nullptr : static_cast<const char*>(round ? g.half : static_cast<void*>(g.c)) + (j + 2 * kWidth) * item;
    const int64_t tiles = (rows + MaxRows - 1) / MaxRows;
    for (int64_t t = 0, r = 0; t < tiles; ++t) {
      const int64_t some = (rows - r + tiles - t - 1) / (tiles - t);  // equal tiles, never 14 + 1
      // Long rows: the lines that the stripe after the next will write are not on their way by themselves.
      if (ahead)
        for (int64_t i = 0; i < some; ++i) {
          const char* line = ahead + (row + r + i) * out_row;
          for (int64_t at = 0; at < out_bytes; at += 64) __builtin_prefetch(line + at, 1);
        }
      if constexpr (sizeof(Item) == sizeof(float))
        if (const Part part = zeros.part(r, some, k); part.count < k) {
          const auto tile = Tiles<typename Of::Math, Edge, Wide, MaxRows>::of_rows[some - 1];
          const float* a = s.a() + r * kScratchRow;
          const Columns rest{b.at + part.first * b.row, b.panel, b.row, b.ahead};
          tile(a + part.first, rest, part.count, rounded, kWidth, false, cols);
          if (part.first + part.count < k && has_minus_zero(rounded, some, kWidth, cols))
            tile(a + part.first, rest, k - part.first, rounded, kWidth, false, cols);
          join_tile(g.c + (row + r) * g.ldc + j, g.ldc, rounded, kWidth, some, cols, add);
          r += some;
          continue;
        }
      const bool here = round && !add;
#if defined(__AVX512F__)
      if constexpr (Of::kPer == 2)
        if (here) {
          auto* to = static_cast<Item*>(g.half) + (row + r) * g.half_row + j;
          RoundedTiles<Edge, Wide, MaxRows>::of_rows[some - 1](s.a() + r * kScratchRow, b, steps_of<Of>(k), to, g.half_row, cols);
          r += some;
          continue;
        }
#endif
      float* c = here ? rounded : g.c + (row + r) * g.ldc + j;
      const int64_t ldc = here ? kWidth : g.ldc;
      Tiles<typename Of::Math, Edge, Wide, MaxRows>::of_rows[some - 1](s.a() + r * kScratchRow, b, steps_of<Of>(k), c, ldc, add, cols);
      if constexpr (sizeof(Item) == 2)
        for (int64_t i = 0; round && i < some; ++i) Of::narrow(static_cast<Item*>(g.half) + (row + r + i) * g.half_row + j, c + i * ldc, Edge ? cols : kWidth);
      r += some;
    }
  }
  // Few rows of float32 times columns that lie along k.
  template <int Wide, int MaxRows>
  int64_t along(int64_t j) {
    constexpr int64_t kWidth = Wide * kVf;
    const auto* b = static_cast<const float*>(g.b) + k0;
    for (; g.n - j > kWidth - kVf; j += kWidth) {
      const int64_t cols = smaller(kWidth, g.n - j);
      const auto& of_rows = cols < kWidth ? AlongTiles<true, Wide, MaxRows>::of_rows : AlongTiles<false, Wide, MaxRows>::of_rows;
      of_rows[rows - 1](s.a(), b + j * g.b_col, g.b_col, k, g.c + row * g.ldc + j, g.ldc, g.add || k0 > 0, cols);
    }
    return j;
  }

  template <int Wide, int MaxRows>
  int64_t stripes(int64_t j) {
    for (; g.n - j >= Wide * kVf; j += Wide * kVf) stripe<false, Wide, MaxRows>(j, Wide * kVf);
    return j;
  }

  void run() {
    const auto* a = static_cast<const Item*>(g.a) + row * g.a_row + k0 * g.a_col;
    if constexpr (sizeof(Item) == sizeof(float)) {
      ZeroEnds::Right right{static_cast<const float*>(g.b) + k0 * g.b_row, g.b_row, g.b_col, g.n};
      const int64_t from = g.a_row == 1 && g.a_col != 1 ? ZeroEnds::whole_steps(a, g.a_col, rows, k, &right) : 0;
      copy_a<Of>(s.a() + from, s.spare(), a + from * g.a_col, g.a_row, g.a_col, rows, k - from);
      zeros.find(s.a(), rows, from, k, &right);
    } else {
      copy_a<Of>(s.a(), s.spare(), a, g.a_row, g.a_col, rows, k);
    }
    int64_t j = 0;
    if constexpr (sizeof(Item) == sizeof(float))
      if (rows <= kAlongRows && !g.b_packed && g.b_row == 1 && g.b_col != 1) {
        if (rows <= kAlongPairs && (!kAliased || g.b_col % kAliased)) j = along<2, kAlongPairs>(j);
        along<1, kAlongRows>(j);
        return;
      }
    if (rows == 1) j = stripes<kOneWide, 1>(j);
    if (rows <= kPairRows) j = stripes<kPairWide, kPairRows>(j);
    if (rows <= kFewRows) j = stripes<kFewWide, kFewRows>(j);
    j = stripes<kTileWide, kTileRows>(j);
    for (; g.n - j > kVf; j += 2 * kVf) stripe<true, 2, kTileRows>(j, smaller<int64_t>(2 * kVf, g.n - j));
    if (j < g.n) stripe<true, 1, kTileRows>(j, g.n - j);
  }
};

template <class Of>
void gemm_of(const GemmArgs& g) {
  const bool along_rows = sizeof(typename Of::Item) == 2 && g.b_packed && g.k <= kShortSum && g.half_row > kNearHalves / 2;
  const int64_t block = along_rows ? kTileRows : kBlockM;
  for (int64_t k0 = 0; k0 < g.k; k0 += kSumBlock)
    for (int64_t row = 0; row < g.m; row += block) Block<Of>{g, scratch(), row, smaller(block, g.m - row), k0, smaller(kSumBlock, g.k - k0)}.run();
}

#if defined(__AVX512F__)
// Whether to multiply bfloat16 in pairs: the processor has the instruction, gives the bits of two fused multiply-adds that flush denormals,
// and is faster at it (the same bits come either way). Asked once.
inline bool measure_pairs() {
  if (!__builtin_cpu_supports("avx512bf16")) return false;
  const FlushDenormals flush;
  Vf sum{}, same{};
  uint32_t state = 1;
  for (int i = 0; i < 256; ++i) {
    typedef uint32_t Bits __attribute__((vector_size(64)));
    Bits x, y;
    for (int l = 0; l < 16; ++l) {
      x[l] = state = state * 1664525u + 1013904223u;
      y[l] = state = state * 1664525u + 1013904223u;
      // Exponents near the middle, and now and then any: overflow, infinities, denormals.
      if (i % 8) {
        x[l] = (x[l] & 0x83ff83ffu) | 0x3c003c00u;
        y[l] = (y[l] & 0x83ff83ffu) | 0x3c003c00u;
      }
    }
    if (i % 8 < 2) sum = same = i % 16 ? Vf{} : Vf(Bits{} + 0x00812345u);
    sum = Dot::of(Vf(x), Vf(y), sum);
    same = multiply_add(Vf(x << 16), Vf(y << 16), multiply_add(Vf(x & 0xffff0000u), Vf(y & 0xffff0000u), same));
    for (int l = 0; l < 16; ++l)
      if (bits_as<uint32_t>(sum[l]) != bits_as<uint32_t>(same[l]) && !(sum[l] != sum[l] && same[l] != same[l])) return false;
  }
  const auto ticks = [](auto math) {
    uint64_t best = ~uint64_t(0);
    for (int turn = 0; turn < 4; ++turn) {
      constexpr int kSums = 12;
      Vf acc[kSums] = {}, x = splat(1.0f);
      const uint64_t start = __builtin_ia32_rdtsc();
      for (int i = 0; i < 64; ++i) {
        DVM_UNROLL
        for (int v = 0; v < kSums; ++v) {
          acc[v] = decltype(math)::of(x, x, acc[v]);
          asm volatile("" : "+v"(acc[v]));  // each for itself
        }
      }
      best = smaller<uint64_t>(best, __builtin_ia32_rdtsc() - start);
    }
    return best;
  };
  return 2 * ticks(Fma{}) > ticks(Dot{});
}
inline bool pairs() {
  static const bool use = measure_pairs();
  return use;
}
#endif

// f(policy): how operands of this dtype become steps.
template <class F>
auto with_policy(DType dtype, F&& f) {
#if defined(__AVX512F__)
  if (dtype == DType::kBF16 && pairs()) return f(Pairs{});
#endif
  if (dtype == DType::kBF16) return f(Widened<Brain>{});
  if (dtype == DType::kF16) return f(Widened<Half>{});
  return f(FromFloat{});
}

inline void gemm(const GemmArgs& g) {
  if (g.m <= 0 || g.n <= 0) return;
  if (g.k <= 0) {
    for (int64_t r = 0; r < g.m; ++r) {
      if (g.half) memset(static_cast<uint16_t*>(g.half) + r * g.half_row, 0, size_t(g.n) * 2);
      else if (!g.add) memset(g.c + r * g.ldc, 0, size_t(g.n) * sizeof(float));
    }
    return;
  }
  const auto run = [&](auto policy) { gemm_of<decltype(policy)>(g); };
  if (g.dtype != DType::kBF16) return with_policy(g.dtype, run);
  const FlushDenormals flush;
  with_policy(g.dtype, run);
}

inline size_t packed_b_bytes(int64_t k, int64_t n, DType dtype) {
  const int64_t steps = with_policy(dtype, [&](auto policy) { return steps_of<decltype(policy)>(k); });
  return size_t((n + kPanel - 1) / kPanel) * size_t(kPanel) * size_t(steps) * sizeof(float);
}

inline void pack_b(void* dst, const void* b, int64_t b_row, int64_t b_col, int64_t k, int64_t n, DType dtype) {
  with_policy(dtype, [&](auto policy) {
    using Of = decltype(policy);
    pack_panels<Of>(static_cast<float*>(dst), scratch().spare(), static_cast<const typename Of::Item*>(b), b_row, b_col, k, n);
  });
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
