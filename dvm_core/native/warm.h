// Shapes that programs had in an earlier run: their segments are made on a thread of their own before a launch asks for them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "program_cache.h"

namespace dvm {

// One set of shapes of a program. `structure` says which program, whatever its lines and immediates are.
struct KnownShapes {
  std::string name;
  uint64_t structure = 0;
  std::vector<int64_t> geometry;
  std::vector<uint8_t> keep;  // by local id
  int64_t uses = 0;
};

uint64_t structure_of(const ProgramCode& code);
// The program with these shapes, every instruction's worked out anew. Throws UserError if it cannot have them.
ProgramCode with_geometry(const ProgramCode& code, const std::vector<int64_t>& geometry);

// Of an earlier run: compiled, in this order, when their program is made.
void know_shapes(std::vector<KnownShapes> shapes);
void warm(const ProgramPtr& program);
// What the programs of this run were launched with, most used first; at most `most`.
std::vector<KnownShapes> shapes_used(size_t most);
void synchronize_warming();

}  // namespace dvm
