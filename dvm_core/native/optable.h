// Names and rules of opcodes and dtypes, made from ops.def and types.h.
#pragma once
#include <string>

#include "program.h"

namespace dvm {

enum class DtypeRule : uint8_t { same, bool_, attr };

struct OpInfo {
  const char* name = nullptr;  // null: no such opcode
  char cls = 0;                // U B T R M V D N, see ops.def
  int arity = 0;               // -1: any
  DtypeRule rule = DtypeRule::same;
  const char* meaning = "";
  bool own_shape = false;      // the result's shape is the instruction's own
};

// Never null; `name` is null for a code that is no opcode.
const OpInfo& op_info(Op op);
const char* op_name(Op op);          // "?" for no opcode
const char* dtype_name(DType t);     // NumPy's name: "float32", ...; "?" for no dtype

constexpr bool is_float(DType t) { return t == DType::kF32 || t == DType::kF16 || t == DType::kBF16 || t == DType::kF64; }
constexpr bool is_int(DType t) { return t == DType::kI8 || t == DType::kU8 || t == DType::kI32 || t == DType::kI64; }

std::string shape_text(const Dims& shape);               // "[32,64]"
std::string type_text(DType t, const Dims& shape);       // "float32[32,64]"

}  // namespace dvm
