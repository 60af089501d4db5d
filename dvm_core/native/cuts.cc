#include "cuts.h"

#include "optable.h"

namespace dvm {

std::string cut_words(Cut cut, const ProgramCode& code, const Resolved& resolved, const Area& area, int i) {
  const Instr& in = code.instrs[i];
  const std::string name = std::string(op_name(in.op)) + " (#" + std::to_string(i) + ")";
  switch (cut) {
    case Cut::kMove: return name + " moves data and runs alone";
    case Cut::kMatMul: return name + " needs its operands in memory";
    case Cut::kRight: return name + " needs its right operand in memory";
    case Cut::kTurned: return name + " reads its left operand transposed";
    case Cut::kBatches: return name + " has other rows than its left operand, or one column";
    case Cut::kVector: return name + " would read its right operand again for each small tile";
    case Cut::kWide: return name + " has a right operand too large to be read again for every block of rows";
    case Cut::kChained: return name + " reads a product whose rows have another width";
    case Cut::kSpace:
      return "different iteration space: " + shape_text(in.shape) + " of " + name + " after " + shape_text(space_of(code, resolved, area.instrs[0]));
    case Cut::kOrder: return name + " reads the result in another order";
    case Cut::kJoined: return name + " needs a reduction that is complete only after all tiles";
    case Cut::kLongRow: return "a row of " + std::to_string(shape_of(code, in.operands[0]).size() / in.shape.size()) + " elements is longer than a tile";
    case Cut::kRows: return name + " reduces other axes than this area's rows";
    case Cut::kBlocks: return name + " reduces other rows together than this area";
    case Cut::kFull: return "the area has " + std::to_string(area.instrs.size()) + " instructions";
    default: return "";
  }
}

}  // namespace dvm
