// The table of strips over rows: normalisations, softmax, cross-entropy and their gradients, as the instructions they consist of.
#pragma once
#include "kernels_rows.h"

namespace dvm::DVM_LEVEL {

template <class L>
constexpr StripLoop strip_loop_entry() {
  return {L::kinds, L::kCount, L::run};
}

#define DVM_LAST Lane::kLast
#define DVM_MEM Lane::kMemory
#define DVM_ONE Lane::kOne
#define DVM_BRAIN DType::kBF16
#define DVM_LOOP(...) strip_loop_entry<StripLoopOf<__VA_ARGS__>>()
inline constexpr StripLoop kStripLoops[] = {
    // sums of products
    DVM_LOOP(Two<Mul, DVM_MEM, DVM_MEM>, SumOf<DVM_LAST>),
    DVM_LOOP(Two<Mul, DVM_MEM, DVM_MEM, true>, SumOf<DVM_LAST>),
    // e^(x - top), and its sum
    DVM_LOOP(Two<Sub, DVM_MEM, DVM_ONE>, One<Exp, DVM_LAST, true>, SumOf<DVM_LAST>),
    DVM_LOOP(Two<Sub, DVM_MEM, DVM_ONE>, One<Exp, DVM_LAST>, SumOf<DVM_LAST>),
    // y (dy - sum)
    DVM_LOOP(Two<Sub, DVM_MEM, DVM_ONE>, Two<Mul, DVM_MEM, DVM_LAST, true>),
    // x - mean, and the sum of its squares, or of its products
    DVM_LOOP(Two<Sub, DVM_MEM, DVM_ONE, true>, Two<Mul, DVM_LAST, DVM_LAST>, SumOf<DVM_LAST>),
    DVM_LOOP(Two<Sub, DVM_MEM, DVM_ONE, true>, Two<Mul, DVM_MEM, DVM_MEM>, SumOf<DVM_LAST>),
    // scaled, times gain, plus bias
    DVM_LOOP(Two<Mul, DVM_MEM, DVM_ONE>, Two<Mul, DVM_LAST, DVM_MEM, true>),
    DVM_LOOP(Two<Mul, DVM_MEM, DVM_ONE>, Two<Mul, DVM_LAST, DVM_MEM>, Two<Add, DVM_LAST, DVM_MEM, true>),
    DVM_LOOP(Two<Mul, DVM_MEM, DVM_ONE, true>, Two<Mul, DVM_LAST, DVM_MEM>, Two<Add, DVM_LAST, DVM_MEM, true>),
    // the same of what the gradient needs, too: scaled, its dy times gain, and the sum of that
    DVM_LOOP(Two<Mul, DVM_MEM, DVM_ONE, true>, Two<Mul, DVM_MEM, DVM_MEM, true>, Two<Mul, DVM_MEM, DVM_MEM>, Two<Add, DVM_LAST, DVM_MEM, true>, SumOf<DVM_MEM>),
    // scale (g - normal * mean)
    DVM_LOOP(Two<Mul, DVM_MEM, DVM_ONE>, Two<Sub, DVM_MEM, DVM_LAST>, Two<Mul, DVM_ONE, DVM_LAST, true>),

    // the same of bfloat16, whose sums are of float32
    DVM_LOOP(Widen<DVM_MEM>, SumOf<DVM_LAST>),
    DVM_LOOP(Two<Mul, DVM_MEM, DVM_MEM, false, DVM_BRAIN>, Widen<DVM_LAST>, SumOf<DVM_LAST>),
    DVM_LOOP(Two<Sub, DVM_MEM, DVM_ONE, false, DVM_BRAIN>, One<Exp, DVM_LAST, true, DVM_BRAIN>, Widen<DVM_LAST>, SumOf<DVM_LAST>),
    DVM_LOOP(Two<Sub, DVM_MEM, DVM_ONE, false, DVM_BRAIN>, One<Exp, DVM_LAST, false, DVM_BRAIN>, Widen<DVM_LAST>, SumOf<DVM_LAST>),
    DVM_LOOP(Two<Sub, DVM_MEM, DVM_ONE, false, DVM_BRAIN>, Two<Mul, DVM_MEM, DVM_LAST, true, DVM_BRAIN>),
    DVM_LOOP(Two<Sub, DVM_MEM, DVM_ONE, true, DVM_BRAIN>, Two<Mul, DVM_LAST, DVM_LAST, false, DVM_BRAIN>, Widen<DVM_LAST>, SumOf<DVM_LAST>),
    DVM_LOOP(Two<Mul, DVM_MEM, DVM_ONE, false, DVM_BRAIN>, Two<Mul, DVM_LAST, DVM_MEM, true, DVM_BRAIN>),
    DVM_LOOP(Two<Mul, DVM_MEM, DVM_ONE, false, DVM_BRAIN>, Two<Mul, DVM_LAST, DVM_MEM, false, DVM_BRAIN>, Two<Add, DVM_LAST, DVM_MEM, true, DVM_BRAIN>),
};
#undef DVM_LOOP
#undef DVM_BRAIN
#undef DVM_LAST
#undef DVM_MEM
#undef DVM_ONE

}  // namespace dvm::DVM_LEVEL
