// Random programs: any opcode over any values, what does not fit is refused by the core and left out. New opcodes come in by themselves.
#pragma once
#include "kit.h"

namespace dvm::test {

struct Input {
  DType dtype;
  Dims shape, strides;
  std::shared_ptr<std::vector<uint64_t>> memory;
  int64_t offset = 0;  // bytes
};

struct RandomGraph {
  std::vector<Input> inputs;
  std::vector<Instr> instrs;  // operands: inputs first
  std::vector<bool> own;      // the shape is given
  int count() const { return static_cast<int>(instrs.size()); }
  int values() const { return static_cast<int>(inputs.size()) + count(); }
};

RandomGraph random_graph(uint64_t seed, int instrs);
// Attributes, immediates, dtype and shape that an instruction of this opcode might have. `shapes`: of its operands.
void draw(Random& r, Instr& instr, const std::vector<const Dims*>& shapes, bool hostile);

// What a failed check prints.
std::string text_of(const RandomGraph& program);

// Inputs and instructions [0, until) recorded; ids are value numbers.
void add_inputs(Graph& g, const RandomGraph& program);
void record(Graph& g, const RandomGraph& program, int from, int until);

// The bytes of values in a graph, contiguous; empty for what is not in memory.
std::vector<uint8_t> bytes_of(Graph& g, int64_t id);

}  // namespace dvm::test
