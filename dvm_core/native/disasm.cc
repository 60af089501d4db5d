#include "disasm.h"
#include "profile.h"

#include <algorithm>

#include <cstdio>

namespace dvm {
namespace {

struct TileName {
  const char* text = nullptr;
  bool select = false, join = false, hook = false, matmul = false, binary = false, random = false, strip = false;
};

TileName name_of(Tile id) {
  struct Layout {
    bool select, join, hook, matmul, binary, random = false, strip = false;
  };
  constexpr Layout unary{}, binary{false, false, false, false, true}, select{true, false, false, false, false}, join{false, true, false, false, false},
      hook{false, false, true, false, false}, matmul{false, false, false, true, false}, random{false, false, false, false, false, true},
      strip{false, false, false, false, false, false, true};
  switch (id) {
#define X(number, name, text, layout, meaning)                                                                                           \
  case Tile::k##name: return {text, layout.select, layout.join, layout.hook, layout.matmul, layout.binary, layout.random, layout.strip};
    DVM_TILE_ISA(X)
#undef X
    default: return {};
  }
}

const char* type_name(int dtype) {
  constexpr const char* names[kDTypes] = {"?", "fp32", "fp16", "bf16", "fp64", "bool", "int8", "uint8", "int32", "int64"};
  return dtype < kDTypes ? names[dtype] : "?";
}

const char* comparison(Tile id) {
  constexpr const char* names[] = {"Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual"};
  return id >= Tile::kEqual && id <= Tile::kGreaterEqual ? names[static_cast<int>(id) - static_cast<int>(Tile::kEqual)] : "";
}

std::string operand_text(uint32_t operand) {
  char text[32];
  if ((operand & kVectors) == kVectors) std::snprintf(text, sizeof text, "v%u", operand & ~kVectors);
  else if (is_global(operand)) std::snprintf(text, sizeof text, "g%u", operand & (kGlobal - 1));
  else std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(operand) * kUbUnit);
  return text;
}

std::string size_text(const Geometry& g, Span span) {
  switch (span) {
    case Span::kFull: return g.tile_rows == 1 ? std::to_string(g.tile_cols) : std::to_string(g.tile_rows) + "x" + std::to_string(g.tile_cols);
    case Span::kRow: return std::to_string(g.tile_rows);
    case Span::kCols: return std::to_string(g.tile_cols);
    default: return "1";
  }
}

// Subs, ScalarDiv, MulX, XDiv: which side is one value (s) or one per row (X).
std::string with_form(const char* name, Form form) {
  switch (form) {
    case Form::kTS: return std::string(name) + "s";
    case Form::kST: return std::string("Scalar") + name;
    case Form::kTX: return std::string(name) + "X";
    case Form::kXT: return std::string("X") + name;
    default: return name;
  }
}

std::string line_of(const AreaCode& area, const uint64_t* w) {
  const Geometry& g = area.space;
  const Tile id = head_id(*w);
  if (id == Tile::kStrip) return "strip // next(" + std::to_string(operand_a(w[1])) + ")";
  const TileName name = name_of(id);
  std::string text = name.binary ? with_form(name.text, head_form(*w)) : name.text;
  if (id == Tile::kCast) {
    text += std::string(type_name(head_dtype(*w)));
    for (size_t c = 4; c < text.size(); ++c) text[c] = static_cast<char>(text[c] >= 'a' && text[c] <= 'z' ? text[c] - 32 : text[c]);
    text += std::string(".") + type_name(head_from(*w));
  } else {
    text += std::string(".") + type_name(head_dtype(*w));
  }
  const bool reduce = id >= Tile::kSumX && id <= Tile::kProdX;
  if (name.matmul && id != Tile::kMatMul) {
    const Convolution& v = area.convolutions[operand_a(w[1])];
    return text + "." + std::to_string(g.tile_rows) + "x" + std::to_string(v.k) + "x" + std::to_string(g.tile_cols) + " " + operand_text(head_dst(*w)) + ", g" +
           std::to_string(v.b.slot) + ", g" + std::to_string(v.a.slot) + " // batches(" + std::to_string(v.batches) + "), m(" + std::to_string(v.m) + "), n(" +
           std::to_string(v.n) + "), taps(" + std::to_string(v.window.y.taps) + "x" + std::to_string(v.window.x.taps) + ")";
  }
  if (name.matmul) {
    const Product& p = area.products[operand_a(w[1])];
    return text + "." + std::to_string(g.tile_rows) + "x" + std::to_string(p.k) + "x" + std::to_string(p.chained() ? p.n : g.tile_cols) + " " +
           operand_text(head_dst(*w)) + ", " + (p.chained() ? operand_text(operand_b(w[1])) : "g" + std::to_string(p.a.slot)) + ", g" +
           std::to_string(p.b.slot) + " // batches(" + std::to_string(p.batches) + "), m(" + std::to_string(p.m) + "), n(" + std::to_string(p.n) + ")";
  }
  text += "." + (reduce ? size_text(g, Span::kFull) : size_text(g, head_span(*w))) + " ";
  if (!name.join && !name.hook) text += operand_text(head_dst(*w)) + ", ";
  if (name.random) return text + "#" + std::to_string(operand_b(w[1])) + " // seed and offset: its immediates";
  text += operand_text(operand_a(w[1]));
  if (name.binary) text += ", " + operand_text(operand_b(w[1]));
  if (name.select) text += ", " + operand_text(operand_b(w[1])) + ", " + operand_text(operand_a(w[2]));
  if (name.join) text += " // join(" + std::to_string(operand_b(w[1])) + ") into g" + std::to_string(area.joins[operand_b(w[1])].result);
  if (id == Tile::kNarrow) text += " // hides(" + std::to_string(operand_b(w[1])) + ")";
  else if (name.hook && id != Tile::kTail) text += " // hook(" + std::to_string(operand_b(w[1])) + ")";
  if (const char* relation = comparison(id); *relation) text += std::string(" // cmp_type(") + relation + ")";
  return text;
}

std::string slot_text(const AreaCode& area, size_t number) {
  const GlobalSlot& s = area.slots[number];
  std::string text = "  g" + std::to_string(number) + ": ";
  switch (s.kind) {
    case GlobalSlot::kImmediate: text += "immediate of #" + std::to_string(s.value); break;
    case GlobalSlot::kConstant: {
      char value[40];
      std::snprintf(value, sizeof value, "%g", area.constants[static_cast<size_t>(s.value)].value);
      text += value;
      break;
    }
    // Where tiles are copied the instructions of that are the loads and stores.
    default: text += s.written ? area.profile ? "out" : "store" : area.profile ? "in" : "load";
  }
  text += std::string(".") + type_name(static_cast<int>(s.dtype));
  if (s.kind != GlobalSlot::kImmediate && s.kind != GlobalSlot::kConstant) text += " %" + std::to_string(s.value);
  if (s.kind == GlobalSlot::kWorkspace) text += " workspace";
  if (s.kind == GlobalSlot::kWorkspace || s.offset) text += " + " + std::to_string(s.offset);
  if (s.bound) {
    if (s.row_step || s.col_step) text += " // bound, row(" + std::to_string(s.row_step) + "), col(" + std::to_string(s.col_step) + ")";
    return text + "\n";
  }
  text += " // view";
  for (int a = 0; a < s.row_axes + s.col_axes; ++a) {
    const ViewAxis& axis = area.axes[static_cast<size_t>(s.first_axis + a)];
    text += std::string(a == s.row_axes ? " | " : " ") + std::to_string(axis.extent) + "*" + std::to_string(axis.stride);
  }
  return text + "\n";
}

// As DVM writes it: the pipe, then whom it waits for and whom it tells, with the event.
std::string sync_text(const uint64_t* w) {
  constexpr const char* names[kPipes] = {"load", "simd", "store"};
  if (!head_synced(*w)) return "";
  const auto pipe = static_cast<size_t>(pipe_of(head_id(*w)));
  const uint64_t sync = w[head_len(*w) - 1];
  std::string text = std::string("    {") + names[pipe];
  if (sync & kBarrier) text += ", bar(1)";
  for (size_t p = 0; p < kPipes; ++p)
    for (const Sync field : {Sync::kWait, Sync::kBackWait, Sync::kSet, Sync::kBackSet}) {
      const int event = sync_event(sync, field, static_cast<Pipe>(p));
      if (event < 0) continue;
      const bool waits = field == Sync::kWait || field == Sync::kBackWait;
      text +=
          std::string(", ") + names[waits ? p : pipe] + "_" + names[waits ? pipe : p] + "_sync(" + (waits ? "wait, " : "set, ") + std::to_string(event) + ")";
    }
  return text + "}\n";
}

void append(std::string* text, const AreaCode& area, const std::vector<uint64_t>& words, const std::vector<int32_t>& instr) {
  int line = 0;
  uint32_t in_strip = 0;
  for (size_t w = 0; words[w]; w += static_cast<size_t>(head_len(words[w]))) {
    *text += std::to_string(line++) + ": " + (in_strip ? "  " : "") + line_of(area, words.data() + w);
    if (in_strip) --in_strip;
    if (head_id(words[w]) == Tile::kStrip) in_strip = operand_a(words[w + 1]);
    else *text += " ; %" + std::to_string(instr[w]);
    *text += "\n" + sync_text(words.data() + w);
  }
}

std::string lowered_line(const TileOp& op, const std::vector<Register>& registers) {
  const TileName name = name_of(op.id);
  const auto reg = [&](int32_t r) {
    return registers[static_cast<size_t>(r)].slot >= 0 ? "g" + std::to_string(registers[static_cast<size_t>(r)].slot) : "r" + std::to_string(r);
  };
  constexpr const char* spans[] = {"", ".row", ".cols", ".one"};
  std::string text =
      (name.binary ? with_form(name.text, op.form) : name.text) + std::string(".") + type_name(static_cast<int>(op.dtype)) + spans[static_cast<int>(op.span)];
  const char* separator = " ";
  for (const int32_t r : {op.dst, op.a, op.b, op.c}) {
    if (r < 0) continue;
    text += separator + reg(r);
    separator = ", ";
  }
  if (op.number >= 0) text += " // number " + std::to_string(op.number);
  return "  " + text + " ; %" + std::to_string(op.instr) + "\n";
}

}  // namespace

std::string instruction_text(const AreaCode& area, const uint64_t* word) { return line_of(area, word); }

std::string tiling_text(int area, const AreaCode& code) {
  const Geometry& g = code.space;
  return "area " + std::to_string(area) + ": rows=" + std::to_string(g.rows) + ", cols=" + std::to_string(g.cols) + ", tile=" + std::to_string(g.tile_rows) +
         "x" + std::to_string(g.tile_cols) + ", groups=" + std::to_string(g.groups) + ", blocks=" + std::to_string(g.blocks) +
         ", chunks=" + std::to_string(g.chunks) + ", units=" + std::to_string(g.units()) + "\n";
}

std::string lowered_text(int area, const std::vector<TileOp>& prologue, const std::vector<TileOp>& ops, const std::vector<Register>& registers,
                         const AreaCode& code) {
  std::string text = "area " + std::to_string(area) + " {\n";
  for (size_t s = 0; s < code.slots.size(); ++s) text += slot_text(code, s);
  for (const TileOp& op : prologue) text += lowered_line(op, registers);
  if (!prologue.empty()) text += "tile:\n";
  for (const TileOp& op : ops) text += lowered_line(op, registers);
  return text + "}\n";
}

std::string disassemble(const AreaCode& area) {
  const Geometry& g = area.space;
  std::string text;
  if (area.profile)
    text += std::string("// target=") + area.profile->name + ", block_dim=" + std::to_string(std::min<int64_t>(g.units(), area.profile->vector_cores)) +
            ", ub_limit=" + std::to_string(ub_room(*area.profile)) + "\n";
  constexpr const char* mains[] = {"vmain.aiv", "vmain.mix", "vmain.move", "vmain.aiv"};
  text += std::string(mains[static_cast<int>(area.kind)]) + "(rows=" + std::to_string(g.rows) + ", cols=" + std::to_string(g.cols) +
          ", tile=" + std::to_string(g.tile_rows) + "x" + std::to_string(g.tile_cols) + ", units=" + std::to_string(g.units()) +
          ", ub=" + std::to_string(area.ub_bytes) + ") {\n";
  for (size_t s = 0; s < area.slots.size(); ++s) text += slot_text(area, s);
  if (area.move >= 0) return text + "0: move ; %" + std::to_string(area.move) + "\n}\n";
  if (area.tile->prologue[0]) {
    text += "prologue:\n";
    append(&text, area, area.tile->prologue, area.tile->prologue_instr);
    text += "tile:\n";
  }
  append(&text, area, area.tile->words, area.tile->instr);
  return text + "}\n";
}

}  // namespace dvm
