// Where a value's elements are: views are strides over the memory of another value.
#pragma once
#include <vector>

#include "program.h"

namespace dvm {

// Element (i0, i1, ...) of a value is element offset + sum(i * strides) of `root`: an input, an instruction's own result, or a FULL, whose
// root is the instruction itself with all strides 0 (its immediate stands for every element).
struct Access {
  int32_t root = -1;
  int64_t offset = 0;
  Dims strides;
};

// What an instruction is to the compiler.
enum class Work : uint8_t {
  kDead,       // nobody needs it
  kView,       // strides alone
  kImmediate,  // a FULL that is read from its immediate
  kOnce,       // the same for every element, from immediates alone: computed once, before the tiles
  kEmpty,      // a result without elements
  kFill,       // a reduction or product over nothing: the identity everywhere
  kTile,       // elementwise, reduction, or a copy (a view that must be in memory)
  kMatMul,
  kMove,
};

// Compiler's view of a value from outside: who needs it, by local value id.
struct Needs {
  std::vector<uint8_t> any;     // someone uses it, keeps it or hooks it
  std::vector<uint8_t> memory;  // someone needs its elements in memory, or keeps them
};
// Of instructions [begin, end); hooked: by instruction.
Needs needs_of(const ProgramCode& code, int begin, int end, const std::vector<uint8_t>& keep, const std::vector<uint8_t>& hooked);

struct Resolved {
  std::vector<Access> access;   // by local value id
  std::vector<Work> work;       // by instruction; those before the segment are kView or kTile, whatever they did
};

// Resolves all instructions up to `end`. keep: by local value id. hooked: by instruction, result must exist as such in a tile.
Resolved resolve(const ProgramCode& code, int begin, int end, const std::vector<uint8_t>& keep, const Needs& needs, const std::vector<uint8_t>& hooked);

// The iteration space of a tile instruction: its result's shape; the operand's for a reduction, and for a RESHAPE that has to copy.
const Dims& space_of(const ProgramCode& code, const Resolved& r, int instr);
// Its operand number k (a tensor) as elements over that space. A view that must be in memory reads its source through its own strides.
Access operand_access(const ProgramCode& code, const Resolved& r, int instr, size_t k);

// Strides of a value of shape `from` when it is broadcast to `to` (NumPy's rule); extents of 1 get stride 0.
Dims broadcast_strides(const Dims& from, const Dims& strides, const Dims& to);

// A reduction's operand as [outer, count, inner] around the reduced axes.
struct Reduction {
  int64_t outer = 1, count = 1, inner = 1;
};
Reduction reduction_of(const Instr& instr, const Dims& operand);

// The first of the axes that are the columns of a product's result.
inline int product_columns(Op op, int rank) { return op == Op::kCONV2D ? rank - 2 : op == Op::kCONV2D_WEIGHT ? rank - 3 : rank - 1; }

// What is read from immediates: no memory is behind it, and every element is the same.
inline bool is_uniform(Work w) { return w == Work::kImmediate || w == Work::kOnce; }

inline bool is_reduction(Op op) { return op >= Op::kSUM && op <= Op::kPROD; }

// The shape and dtype of a local value.
inline const Dims& shape_of(const ProgramCode& code, int value) {
  const int n = static_cast<int>(code.inputs.size());
  return value < n ? code.inputs[value].shape : code.instrs[value - n].shape;
}
inline DType dtype_of(const ProgramCode& code, int value) {
  const int n = static_cast<int>(code.inputs.size());
  return value < n ? code.inputs[value].dtype : code.instrs[value - n].dtype;
}

}  // namespace dvm
