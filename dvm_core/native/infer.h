// What the inference rules share: an instruction being recorded, its operands, and the words for what is wrong with them.
#pragma once
#include <algorithm>
#include <cstdint>

#include "optable.h"

namespace dvm {

using Operands = std::vector<OperandType>;

// Larger arrays cannot be addressed; smaller products never overflow.
inline constexpr int64_t kMaxBytes = int64_t{1} << 46;

struct Context {
  Instr& instr;
  const Operands& in;

  [[noreturn]] void fail(const std::string& what) const { throw UserError(std::string(op_name(instr.op)) + ": " + what, instr.place); }
  std::string type(size_t i) const { return type_text(in[i].dtype, *in[i].shape); }
  const Dims& shape(size_t i) const { return *in[i].shape; }

  int axis(int64_t value, int rank, const char* what = "axis") const {
    if (value < 0 || value >= rank) fail(std::string(what) + " " + std::to_string(value) + " is out of range for rank " + std::to_string(rank));
    return static_cast<int>(value);
  }
  void attr_count(size_t n, const char* what) const {
    if (instr.attrs.size() != n) fail("takes " + std::to_string(n) + " attributes (" + what + "), got " + std::to_string(instr.attrs.size()));
  }
  void imm_count(size_t n, const char* what) const {
    if (instr.imms.size() != n) fail("takes " + std::to_string(n) + " immediates (" + what + "), got " + std::to_string(instr.imms.size()));
  }
  void result_dtype() const {
    if (!item_size(instr.dtype)) fail("needs a result dtype, got code " + std::to_string(static_cast<int>(instr.dtype)));
  }
  // `supported` is this op's row of a kernel table.
  template <class Fn>
  void supported(const Fn (&row)[kDTypes], DType t, size_t operand = 0) const {
    if (row[static_cast<size_t>(t)]) return;
    std::string names;
    for (int d = 1; d < kDTypes; ++d)
      if (row[d]) names += (names.empty() ? "" : ", ") + std::string(dtype_name(static_cast<DType>(d)));
    fail("does not take " + type(operand) + (names.empty() ? "" : "; it takes " + names + " (cast it first)"));
  }
};

// Throws if a shape has a negative extent or more elements than can be addressed.
void check_size(const Context& c, const Dims& shape, DType t, const char* what);
// NumPy broadcasting of `other` into `into`, axes aligned at the right.
void broadcast_into(const Context& c, Dims& into, const Dims& other);
// The elements start, start + step, ... (extent of them) must lie in 0..size-1.
void check_range(const Context& c, int axis, int64_t size, int64_t start, int64_t step, int64_t extent);

void infer_movement(const Context& c);  // class D
void infer_convolution(const Context& c);
void infer_pool(const Context& c);

}  // namespace dvm
