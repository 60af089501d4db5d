// Element types and opcodes, shared by every floor below Python.
#pragma once
#include <cstdint>

namespace dvm {

enum class DType : uint8_t { kNone = 0, kF32 = 1, kF16 = 2, kBF16 = 3, kF64 = 4, kBool = 5, kI8 = 6, kU8 = 7, kI32 = 8, kI64 = 9 };
inline constexpr int kDTypes = 10;

// Bytes of one element; 0 for a code that is no dtype.
constexpr int item_size(DType t) {
  constexpr int sizes[kDTypes] = {0, 4, 2, 2, 8, 1, 1, 1, 4, 8};
  return static_cast<unsigned>(t) < kDTypes ? sizes[static_cast<unsigned>(t)] : 0;
}

// The dtype a reduction or product of `t` is summed in, rounded to `t` once at the end.
constexpr DType compute_dtype(DType t) { return t == DType::kF16 || t == DType::kBF16 ? DType::kF32 : t; }

enum class Op : uint8_t {
  kEnd = 0,
#define DVM_OP(name, code, cls, arity, dtype, meaning) k##name = code,
#include "ops.def"
#undef DVM_OP
};
inline constexpr int kOps = 256;

}  // namespace dvm
