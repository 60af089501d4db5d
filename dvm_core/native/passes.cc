#include "passes.h"

#include "optable.h"

namespace dvm {
namespace {

std::string value_text(const ProgramCode& code, int32_t v) { return v < 0 ? "imm" : "%" + std::to_string(v) + (code.instr_of(v) < 0 ? "in" : ""); }

// `%5 = MUL(%3, imm) float32[8,64]`; operands as `operand` writes them.
template <class Operand>
std::string instr_text(const ProgramCode& code, int i, Operand&& operand) {
  const Instr& in = code.instrs[static_cast<size_t>(i)];
  std::string text = value_text(code, code.value_of(i)) + " = " + op_name(in.op) + "(";
  for (size_t k = 0; k < in.operands.size(); ++k) text += (k ? ", " : "") + operand(k);
  return text + ") " + type_text(in.dtype, in.shape);
}

std::string plain_text(const ProgramCode& code, int i) {
  return instr_text(code, i, [&](size_t k) { return value_text(code, code.instrs[static_cast<size_t>(i)].operands[k]); });
}

// `%1in`, or `%1in + 8 by [64,1]` where it is read through other strides than its own.
std::string access_text(const ProgramCode& code, int32_t value, const Access& a) {
  std::string text = value_text(code, a.root);
  if (a.root == value) return text;
  if (a.offset) text += " + " + std::to_string(a.offset);
  return text + " by " + shape_text(a.strides);
}

std::string resolved_text(const ProgramCode& code, int i, const Resolved& r) {
  return instr_text(code, i, [&](size_t k) {
    const int32_t o = code.instrs[static_cast<size_t>(i)].operands[k];
    return o < 0 ? std::string("imm") : access_text(code, o, r.access[static_cast<size_t>(o)]);
  });
}

const char* extent_text(Extent e) {
  constexpr const char* names[] = {"", " // one per row", " // joined after the tiles", " // rows of another width, to memory"};
  return names[static_cast<int>(e)];
}

}  // namespace

const char* kind_name(AreaKind kind) {
  constexpr const char* names[] = {"vector", "cube", "move", "reduce"};
  return names[static_cast<int>(kind)];
}

void PassLog::add(const char* pass, const std::string& text) {
  for (auto& [name, told] : passes)
    if (name == pass) {
      told += text;
      return;
    }
  passes.emplace_back(pass, text);
}

void PassLog::add_fusing(const ProgramCode& code, int begin, int end, const Fusing& f) {
  std::string source, alive, strided, folded, fused;
  for (int i = begin; i < end; ++i) {
    const Work work = f.resolved.work[static_cast<size_t>(i)];
    const std::string line = plain_text(code, i) + "\n";
    source += line;
    if (work == Work::kDead) continue;
    alive += line;
    const bool view = work == Work::kView || work == Work::kEmpty;
    if (!view) strided += resolved_text(code, i, f.resolved) + "\n";
    if (view || work == Work::kImmediate) continue;
    const int into = f.folded_into[static_cast<size_t>(i)];
    folded += resolved_text(code, i, f.resolved);
    if (work == Work::kOnce) folded += " // computed once, folded into " + (into < 0 ? "nothing" : value_text(code, code.value_of(into)));
    folded += "\n";
  }
  for (size_t a = 0; a < f.areas.size(); ++a) {
    const Area& area = f.areas[a];
    fused += "area " + std::to_string(a) + " " + kind_name(area.kind) + " {\n";
    for (int i : area.instrs) fused += "  " + resolved_text(code, i, f.resolved) + extent_text(f.extent[static_cast<size_t>(i)]) + "\n";
    fused += "} // " + area.cut + "\n";
  }
  add("Source", source);
  add("DeadCodeEliminate", alive);
  add("EliminateReshape", strided);
  add("FoldConstants", folded);
  add("Fuse", fused);
}

}  // namespace dvm
