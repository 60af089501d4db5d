// Shapes and strides, and the tables of opcode and dtype names.
#include <array>
#include <string_view>

#include "optable.h"

namespace dvm {

Dims contiguous_strides(const Dims& shape) {
  Dims strides;
  strides.rank = shape.rank;
  int64_t step = 1;
  for (int i = shape.rank - 1; i >= 0; --i) {
    strides[i] = step;
    step *= shape[i];
  }
  return strides;
}

// The stride of an axis with one element, and every stride of an empty array, is never used.
bool is_contiguous(const Dims& shape, const Dims& strides) {
  int64_t step = 1;
  for (int i = shape.rank - 1; i >= 0; --i) {
    if (shape[i] == 0) return true;
    if (shape[i] != 1 && strides[i] != step) {
      for (int j = i - 1; j >= 0; --j)
        if (shape[j] == 0) return true;
      return false;
    }
    step *= shape[i];
  }
  return true;
}

// ops.def's word for "the shape is the instruction's own".
static bool says_own(std::string_view meaning) { return meaning.find(" own") != meaning.npos; }

const OpInfo& op_info(Op op) {
  static const auto table = [] {
    std::array<OpInfo, kOps> t{};
    constexpr DtypeRule same = DtypeRule::same, attr = DtypeRule::attr;
    // ops.def writes the rule as `bool`, a keyword: it is pasted to a name.
    [[maybe_unused]] constexpr DtypeRule rule_same = same, rule_bool = DtypeRule::bool_, rule_attr = attr;
#define DVM_OP(name, code, cls, arity, dtype, meaning) t[code] = {#name, #cls[0], arity, rule_##dtype, meaning, says_own(meaning)};
#include "ops.def"
#undef DVM_OP
    return t;
  }();
  return table[static_cast<size_t>(op)];
}

const char* op_name(Op op) {
  const char* name = op_info(op).name;
  return name ? name : "?";
}

const char* dtype_name(DType t) {
  constexpr const char* names[kDTypes] = {"?", "float32", "float16", "bfloat16", "float64", "bool", "int8", "uint8", "int32", "int64"};
  return static_cast<unsigned>(t) < kDTypes ? names[static_cast<unsigned>(t)] : "?";
}

std::string shape_text(const Dims& shape) {
  std::string text = "[";
  for (int i = 0; i < shape.rank; ++i) {
    if (i) text += ',';
    text += std::to_string(shape[i]);
  }
  return text + ']';
}

std::string type_text(DType t, const Dims& shape) { return dtype_name(t) + shape_text(shape); }

}  // namespace dvm
