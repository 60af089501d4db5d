#include "encode.h"

#include <algorithm>
#include <array>

#include "convolution.h"
#include "disasm.h"
#include "encoder.h"
#include "memory.h"
#include "optable.h"
#include "passes.h"
#include "product.h"

namespace dvm {

Encoder::Encoder(const EncodeInput& in, int area)
    : in_(in), code_(in.code), inputs_(static_cast<int>(in.code.inputs.size())), area_index_(area), area_(in.fusing.areas[area]), space_(area_) {
  out_.kind = area_.kind;
}

AreaCode Encoder::run() {
  std::vector<size_t> first_ref;
  first_ref.reserve(area_.instrs.size());
  refs_.reserve(2 * area_.instrs.size());
  registers_.reserve(2 * area_.instrs.size());
  results_.reserve(area_.instrs.size());
  ops_.reserve(area_.instrs.size() + 2);
  out_.slots.reserve(8);
  for (int i : area_.instrs) {
    first_ref.push_back(refs_.size());
    collect(i);
  }
  const int64_t start = now_ns();
  if (out_.convolutions.empty()) space_.finish(area_, out_.products.empty() ? nullptr : &out_.products[0], in_.tile_elements);
  else space_.finish(area_, out_.convolutions[0], in_.tile_elements);
  out_.tile_ns = now_ns() - start;
  out_.space = space_.geometry;
  count_loads();
  external_register_.assign(space_.externals.size(), -1);
  find_mask(first_ref);
  for (size_t n = 0; n < area_.instrs.size(); ++n) lower(area_.instrs[n], refs_.data() + first_ref[n]);
  if (!in_.profile.simulated && !out_.narrows) form_strips();
  if (in_.log) {
    in_.log->add("Tile", tiling_text(area_index_, out_));
    in_.log->add("Lower", lowered_text(area_index_, prologue_, ops_, registers_, out_));
  }
  if (in_.profile.simulated) pin_buffers();
  const TileRoom room = room_of(out_.space);
  if (const AreaCode* same = near(room)) {
    out_.layout = same->layout;
    out_.ub_bytes = out_.ub_peak = same->layout->ub_bytes;
    out_.tile = same->tile;
  } else {
    lay_out(in_.profile.simulated ? room : with_slack(room));
  }
  const auto reserve = [&](int64_t* at, int64_t bytes) {
    if (!bytes) return;
    *at = (out_.ub_bytes + 127) / 128 * 128;
    out_.ub_bytes = *at + bytes;
  };
  for (Product& p : out_.products) {
    reserve(&p.ub, plan_product(&p, out_.space));
    if (out_.narrows && p.chained()) {
      p.narrows = true;
      p.packs_before = false;  // its inner extent is another in every tile
    }
    if (p.from != p.dtype && p.k > kSumBlock) reserve(&p.wide, out_.space.tile_rows * (p.chained() ? p.n : out_.space.tile_cols) * item_size(p.dtype));
  }
  for (Convolution& v : out_.convolutions) {
    choose_way(&v, out_.space);
    reserve(&v.ub, convolution_ub_bytes(v, out_.space));
    reserve(&v.wide, convolution_wide_bytes(v, out_.space));
  }
  return std::move(out_);
}

// The area of a near shape whose words are this one's too; null: there is none.
const AreaCode* Encoder::near(const TileRoom& room) const {
  const auto same = [](const Register& a, const Register& b) { return a.same_but_address(b); };
  for (const std::vector<AreaCode>* areas : in_.near) {
    const TileLayout* l = (*areas)[static_cast<size_t>(area_index_)].layout.get();
    if (l && l->room.holds(room) && l->ops == ops_ && l->prologue == prologue_ && std::ranges::equal(l->registers, registers_, same))
      return &(*areas)[static_cast<size_t>(area_index_)];
  }
  return nullptr;
}

// Gives the registers their addresses and makes the words.
void Encoder::lay_out(const TileRoom& room) {
  out_.ub_bytes = out_.ub_peak = allocate_ub(prologue_, ops_, &registers_, room);
  if (in_.profile.simulated) order_pipes();
  auto tile = std::make_shared<TileWords>();
  for (size_t n = 0; n < ops_.size(); ++n)
    if (ops_[n].id == Tile::kStrip) tile->strips.push_back(make_strip(ops_.data() + n + 1, ops_[n].behind));
  pack(prologue_, &tile->prologue, &tile->prologue_instr);
  pack(ops_, &tile->words, &tile->instr);
  out_.tile = std::move(tile);
  if (!in_.profile.simulated)
    out_.layout = std::make_shared<const TileLayout>(std::move(prologue_), std::move(ops_), std::move(registers_), room, out_.ub_bytes);
}

AreaCode Encoder::run_move() {
  const int i = area_.instrs[0];
  const Instr& in = code_.instrs[i];
  out_.move = i;
  for (int32_t o : in.operands) {
    out_.operands.push_back(memory_slot(o));
    out_.operand_strides.push_back(access(o).strides);
  }
  out_.operands.push_back(memory_slot(code_.value_of(i)));
  out_.slots.back().written = true;
  out_.space.cols = out_.space.tile_cols = in.shape.size();
  hooks_after(i, out_.operands.back());
  return std::move(out_);
}

// ---- operands -----------------------------------------------------------------------------------------------------------------------

bool Encoder::made_here(int32_t root) const {
  const int i = root - inputs_;
  return i >= 0 && in_.fusing.area_of[i] == area_index_;
}

bool Encoder::is_immediate(int32_t root) const {
  const int i = root - inputs_;
  return i >= 0 && is_uniform(in_.fusing.resolved.work[i]);
}

DType Encoder::operand_dtype(const Instr& in) const {
  for (int32_t o : in.operands)
    if (o >= 0) return dtype_of(code_, o);
  return in.dtype;
}

void Encoder::collect(int i) {
  const Instr& in = code_.instrs[i];
  if (in.op == Op::kMATMUL) {
    Product p = make_product(code_, in_.fusing.resolved, i);
    if (in_.fusing.extent[i] == Extent::kChained) refs_.push_back({access(in.operands[0]).root - inputs_, -1});
    else p.a.slot = memory_slot(in.operands[0]);
    p.b.slot = memory_slot(in.operands[1]);
    out_.products.push_back(std::move(p));
    return;
  }
  if (in.op == Op::kCONV2D || in.op == Op::kCONV2D_WEIGHT) {
    Convolution c = make_convolution(code_, in_.fusing.resolved, i);
    c.a.slot = memory_slot(in.operands[1]);
    c.b.slot = memory_slot(in.operands[0]);
    out_.convolutions.push_back(std::move(c));
    return;
  }
  const int64_t scale = in_.fusing.extent[i] == Extent::kRow && !is_reduction(in.op) ? area_.cols : 1;
  if (in.op == Op::kFULL) refs_.push_back(literal(i, in.dtype));
  for (size_t k = 0; k < in.operands.size(); ++k) refs_.push_back(in.operands[k] < 0 ? literal(i, operand_dtype(in)) : operand(i, k, scale));
}

Encoder::Ref Encoder::literal(int i, DType dtype) {
  External e;
  e.immediate = i;
  e.dtype = dtype;
  return {-1, space_.add(e, Dims{}, Dims{}, 1)};
}

Encoder::Ref Encoder::operand(int i, size_t k, int64_t scale) {
  const int32_t value = code_.instrs[i].operands[k], root = access(value).root;
  const DType dtype = dtype_of(code_, value);
  if (made_here(root)) return {root - inputs_, -1};
  if (is_immediate(root)) return literal(root - inputs_, dtype);
  const Access a = operand_access(code_, in_.fusing.resolved, i, k);
  External e;
  e.root = a.root;
  e.offset = a.offset;
  e.dtype = dtype;
  return {-1, space_.add(e, space_of(code_, in_.fusing.resolved, i), a.strides, scale)};
}

// ---- slots and registers ------------------------------------------------------------------------------------------------------------

GlobalSlot Encoder::root_slot(int32_t root) const {
  GlobalSlot s;
  s.value = root;
  if (is_immediate(root)) {
    s.kind = GlobalSlot::kImmediate;
    s.value = root - inputs_;
  } else if (!in_.keep[root] && in_.stored[root]) {
    s.kind = GlobalSlot::kWorkspace;
  }
  return s;
}

int32_t Encoder::add_slot(const GlobalSlot& s) {
  out_.slots.push_back(s);
  return static_cast<int32_t>(out_.slots.size()) - 1;
}

// A whole value in memory, for moves and products.
int32_t Encoder::memory_slot(int32_t value) {
  const Access& a = access(value);
  GlobalSlot s = root_slot(a.root);
  s.dtype = dtype_of(code_, value);
  s.offset = a.offset * item_size(s.dtype);
  return add_slot(s);
}

int32_t Encoder::constant_slot(double value, DType dtype) {
  GlobalSlot s;
  s.kind = GlobalSlot::kConstant;
  s.dtype = dtype;
  s.value = static_cast<int32_t>(out_.constants.size());
  out_.constants.push_back({value, dtype});
  return add_slot(s);
}

int32_t Encoder::add_register(Span span, DType dtype, int32_t slot) {
  registers_.push_back({slot, span, dtype, false, -1});
  return static_cast<int32_t>(registers_.size()) - 1;
}

int32_t Encoder::register_of(int i) const {
  const auto found = std::find_if(results_.begin(), results_.end(), [i](const auto& r) { return r.first == i; });
  return found->second;
}

// Where the result goes: straight to memory if it must be there and a tile of it is one run (or a product on its own writes row by row),
// else the UB.
int32_t Encoder::result_register(int i, Span span) {
  const Instr& in = code_.instrs[i];
  const int32_t value = code_.value_of(i);
  if (!in_.stored[value]) return add_register(span, in.dtype);
  GlobalSlot s = root_slot(value);
  s.dtype = in.dtype;
  s.written = true;
  const int64_t item = item_size(in.dtype);
  s.row_step = span == Span::kRow ? item : out_.space.cols * item;
  s.col_step = span == Span::kRow ? 0 : item;
  const int32_t slot = add_slot(s);
  const bool by_rows = in.op == Op::kMATMUL && area_.instrs.size() == 1 && !hooked(i);
  if ((is_run(span) || by_rows) && !in_.profile.simulated) return add_register(span, in.dtype, slot);
  store_after_ = slot;
  return add_register(span, in.dtype);
}

// Whether a tile of a contiguous value is one run of memory.
bool Encoder::is_run(Span span) const { return span != Span::kFull || !(out_.space.narrow() || out_.narrows); }

bool Encoder::used_in_place(const External& e) const {
  if (!e.contiguous) return false;
  return e.span == Span::kCols ? out_.space.tile_rows == 1 : is_run(e.span);
}

// The register of an external; loaded at its first use, `into` a result where one is given and a load is needed.
int32_t Encoder::external(int32_t index, int32_t instr, int32_t into) {
  int32_t& reg = external_register_[index];
  if (reg >= 0) return reg;
  const External& e = space_.externals[index];
  if (e.immediate >= 0 && in_.fusing.resolved.work[e.immediate] == Work::kOnce) return reg = once(e.immediate);
  GlobalSlot slot;
  if (e.immediate >= 0) {
    slot.kind = GlobalSlot::kImmediate;
    slot.value = e.immediate;
  } else {
    slot = root_slot(e.root);
  }
  const bool bound = used_in_place(e), copied = bound && in_.profile.simulated && e.immediate < 0;
  // One row for all rows is repeated once, before the tiles.
  const bool invariant = e.span == Span::kCols && !bound && out_.space.tile_cols == out_.space.cols, repeated = invariant && e.contiguous;
  space_.describe(e, bound || repeated, &slot, &out_.axes);
  const int32_t number = add_slot(slot);
  const Span span = e.span == Span::kCols ? Span::kFull : e.span;
  if (bound && !copied) return reg = add_register(span, e.dtype, number);
  int32_t source = add_register(repeated ? Span::kCols : span, e.dtype, number);
  TileOp load{.id = copied ? Tile::kLoad : repeated ? Tile::kBroadcastY : Tile::kLoadView, .span = span, .dtype = e.dtype, .a = source, .instr = instr};
  if (invariant) {
    if (repeated && in_.profile.simulated) {
      const int32_t row = add_register(Span::kCols, e.dtype);
      prologue_.push_back({.id = Tile::kLoad, .span = Span::kCols, .dtype = e.dtype, .dst = row, .a = source, .instr = instr});
      load.a = source = row;
    }
    reg = load.dst = add_register(span, e.dtype);
    registers_[reg].pinned = true;
    prologue_.push_back(load);
    return reg;
  }
  load.dst = into >= 0 ? into : add_register(span, e.dtype);
  emit(load);
  if (into < 0) reg = load.dst;
  return load.dst;
}

// The one element of an instruction that reads immediates only, computed by its own tile instruction before the tiles.
int32_t Encoder::once(int i) {
  for (const auto& [instr, reg] : once_)
    if (instr == i) return reg;
  const Instr& in = code_.instrs[i];
  std::array<Ref, 3> refs;
  for (size_t k = 0; k < in.operands.size(); ++k) {
    const int32_t o = in.operands[k];
    const int source = o < 0 ? i : access(o).root - inputs_;
    if (o >= 0 && in_.fusing.resolved.work[source] == Work::kOnce) {
      refs[k].reg = once(source);
      continue;
    }
    GlobalSlot slot;
    slot.kind = GlobalSlot::kImmediate;
    slot.value = source;
    slot.dtype = o < 0 ? operand_dtype(in) : dtype_of(code_, o);
    refs[k].reg = add_register(Span::kOne, slot.dtype, add_slot(slot));
  }
  const int32_t dst = add_register(Span::kOne, in.dtype);
  std::swap(ops_, prologue_);
  switch (op_info(in.op).cls) {
    case 'B': lower_binary(i, refs.data(), dst, Span::kOne); break;
    case 'T': lower_select(i, refs.data(), dst, Span::kOne); break;
    default: lower_unary(i, refs[0], dst, Span::kOne); break;
  }
  std::swap(ops_, prologue_);
  registers_[dst].pinned = true;
  once_.emplace_back(i, dst);
  return dst;
}

// The same elements, repeated to `span`.
int32_t Encoder::widen(int32_t reg, Span span, int32_t instr, int32_t into) {
  if (registers_[reg].span == span) return reg;
  if (into < 0)
    for (const auto& [from, to] : widened_)
      if (from == reg && registers_[to].span == span) return to;
  const DType dtype = registers_[reg].dtype;
  const Tile id = registers_[reg].span == Span::kOne ? Tile::kBroadcastS : Tile::kBroadcastX;
  const int32_t dst = into >= 0 ? into : add_register(span, dtype);
  if (into < 0) widened_.push_back({reg, dst});
  emit({.id = id, .span = span, .dtype = dtype, .dst = dst, .a = reg, .instr = instr});
  return dst;
}

// ---- words --------------------------------------------------------------------------------------------------------------------------

uint32_t Encoder::operand_word(int32_t reg) const {
  if (reg < 0) return 0;
  const Register& r = registers_[reg];
  return r.slot >= 0 ? kGlobal | static_cast<uint32_t>(r.slot) : static_cast<uint32_t>(r.address / kUbUnit);
}

void Encoder::pack(const std::vector<TileOp>& ops, std::vector<uint64_t>* words, std::vector<int32_t>* instr) const {
  words->reserve(ops.size() * 2 + 1);
  for (const TileOp& op : ops) {
    const uint8_t len = (op.id == Tile::kSelect ? 3 : 2) + (op.sync ? 1 : 0);
    const bool product = op.id >= Tile::kMatMul && op.id <= Tile::kConv2DWeight;
    const auto place = [&](int32_t reg, int8_t at) { return at >= 0 ? kVectors | static_cast<uint32_t>(at) : operand_word(reg); };
    const uint32_t a = product ? static_cast<uint32_t>(op.number) : op.behind ? static_cast<uint32_t>(op.behind) : place(op.a, op.from_a);
    const uint32_t b = op.number >= 0 && !product ? static_cast<uint32_t>(op.number) : place(op.b, op.from_b);
    words->push_back(
        pack_head({op.id, place(op.dst, op.to), op.form, op.span, static_cast<uint8_t>(op.dtype), static_cast<uint8_t>(op.from), len, op.sync != 0}));
    words->push_back(uint64_t(b) << 26 | a);
    if (op.id == Tile::kSelect) words->push_back(operand_word(op.c));
    if (op.sync) words->push_back(op.sync);
    instr->insert(instr->end(), len, op.instr);
  }
  words->push_back(0);
  instr->push_back(-1);
}

// ---- simulated devices --------------------------------------------------------------------------------------------------------------

// Buffers that the load pipe fills or the store pipe empties keep their place: no other pipe has to be told when they are free within a tile.
void Encoder::pin_buffers() {
  for (const TileOp& op : ops_) {
    if (pipe_of(op.id) == Pipe::kLoad && op.dst >= 0) registers_[op.dst].pinned = true;
    if (pipe_of(op.id) == Pipe::kStore) registers_[op.a].pinned = true;
  }
}

UbUse::Range Encoder::bytes_of(int32_t reg) const {
  if (reg < 0 || registers_[reg].slot >= 0) return {};
  const Register& r = registers_[reg];
  return {r.address, r.address + register_bytes(r, room_of(out_.space))};
}

void Encoder::list_buffers() {
  std::vector<int32_t> buffer(registers_.size(), -1);
  const auto made = [&](const TileOp& op, int32_t at) {
    if (op.dst < 0 || registers_[op.dst].slot >= 0) return -1;
    int32_t& b = buffer[static_cast<size_t>(op.dst)];
    if (b >= 0) return b;
    const Register& r = registers_[op.dst];
    const bool copy = op.a >= 0 && registers_[op.a].slot >= 0 && (pipe_of(op.id) == Pipe::kLoad || op.id == Tile::kBroadcastY);
    b = static_cast<int32_t>(out_.buffers.size());
    out_.buffers.push_back({bytes_of(op.dst), r.dtype, op.instr, copy ? registers_[op.a].slot : -1, at, at, r.pinned || at < 0});
    return b;
  };
  for (const TileOp& op : prologue_) made(op, -1);
  for (size_t i = 0; i < ops_.size(); ++i) {
    const TileOp& op = ops_[i];
    UbUse& use = out_.uses[i];
    const int32_t operands[3] = {op.a, op.b, op.c};
    for (size_t k = 0; k < 3; ++k) {
      if (operands[k] < 0) continue;
      use.takes[k] = buffer[static_cast<size_t>(operands[k])];
      if (use.takes[k] >= 0) out_.buffers[static_cast<size_t>(use.takes[k])].last = static_cast<int32_t>(i);
    }
    use.makes = made(op, static_cast<int32_t>(i));
  }
}

void Encoder::order_pipes() {
  int32_t word = 0;
  for (const TileOp& op : ops_) out_.uses.push_back({pipe_of(op.id), op.instr, 0, bytes_of(op.dst), {bytes_of(op.a), bytes_of(op.b), bytes_of(op.c)}});
  list_buffers();
  const std::vector<uint64_t> sync = dvm::order_pipes(out_.uses);
  for (size_t i = 0; i < ops_.size(); ++i) {
    ops_[i].sync = sync[i];
    out_.uses[i].word = word;
    word += (ops_[i].id == Tile::kSelect ? 3 : 2) + (sync[i] ? 1 : 0);
  }
  out_.profile = &in_.profile;
}

AreaCode encode(const EncodeInput& in, int area) {
  Encoder encoder(in, area);
  return in.fusing.areas[area].kind == AreaKind::kMove ? encoder.run_move() : encoder.run();
}

}  // namespace dvm
