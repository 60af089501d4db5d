// Which SIMD level runs: the best one that is linked and that the processor has, or the one DVM_SIMD names. Merging of statistics.
#include "kernels.h"
#include "strip_kernels.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace dvm {

#if defined(DVM_HAVE_AVX512)
extern const Kernels kernels_table_avx512;
extern const StripKernels strip_table_avx512;
#endif
#if defined(DVM_HAVE_AVX2)
extern const Kernels kernels_table_avx2;
extern const StripKernels strip_table_avx2;
#endif
extern const Kernels kernels_table_baseline;
extern const StripKernels strip_table_baseline;

namespace {

struct Level {
  const Kernels* table;
  const StripKernels* strips;
  bool (*supported)();
};

// Best first.
constexpr Level kLevels[] = {
#if defined(DVM_HAVE_AVX512)
    {&kernels_table_avx512, &strip_table_avx512,
     [] {
       return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
              __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
     }},
#endif
#if defined(DVM_HAVE_AVX2)
    {&kernels_table_avx2, &strip_table_avx2, [] { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c"); }},
#endif
    {&kernels_table_baseline, &strip_table_baseline, [] { return true; }},
};

const Kernels* choose() {
  const char* forced = std::getenv("DVM_SIMD");
  const bool any = !forced || !*forced;
  if (!any)
    if (const Kernels* table = kernels_at(forced)) return table;
  for (const Level& level : kLevels) {
    if (!level.supported()) continue;
    if (!any)
      std::fprintf(stderr, "dvm: DVM_SIMD=%s is not available in this build or on this processor; using %s (levels: baseline, avx2, avx512)\n", forced,
                   level.table->level);
    return level.table;
  }
  return &kernels_table_baseline;
}

}  // namespace

const Kernels& kernels() {
  static const Kernels* const table = choose();
  return *table;
}

const StripKernels& strip_kernels() {
  static const StripKernels* const table = [] {
    for (const Level& level : kLevels)
      if (level.table == &kernels()) return level.strips;
    return &strip_table_baseline;
  }();
  return *table;
}

const Kernels* kernels_at(const char* name) {
  for (const Level& level : kLevels)
    if (std::strcmp(level.table->level, name) == 0) return level.supported() ? level.table : nullptr;
  return nullptr;
}

// Means and squared deviations of two sets joined (Chan, Golub, LeVeque 1979).
void stats_merge(Stats* into, const Stats& from) {
  if (from.finite > 0) {
    if (into->finite == 0) {
      into->min = from.min;
      into->max = from.max;
      into->mean = from.mean;
      into->m2 = from.m2;
      into->abs_mean = from.abs_mean;
    } else {
      const double a = double(into->finite), b = double(from.finite), delta = from.mean - into->mean;
      if (from.min < into->min) into->min = from.min;
      if (from.max > into->max) into->max = from.max;
      into->mean += delta * (b / (a + b));
      into->abs_mean += (from.abs_mean - into->abs_mean) * (b / (a + b));
      into->m2 += from.m2 + delta * delta * (a * b / (a + b));
    }
  }
  into->count += from.count;
  into->finite += from.finite;
  into->zero += from.zero;
  into->nan += from.nan;
  into->pos_inf += from.pos_inf;
  into->neg_inf += from.neg_inf;
  for (int i = 0; i < 32; ++i) into->histogram[i] += from.histogram[i];
}

}  // namespace dvm
