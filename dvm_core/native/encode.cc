#include "encode.h"

#include <algorithm>
#include <optional>

#include "optable.h"
#include "tile.h"

namespace dvm {
namespace {

constexpr double kSimpleNs = 0.12, kCostlyNs = 0.6, kFlopNs = 0.01;  // per element and per multiply-add, one thread

constexpr int64_t kPackedInTile = 5 << 18;  // bytes

bool is_costly(Op op) {
  return op == Op::kPOW || op == Op::kDIV || (op >= Op::kEXP && op <= Op::kSIGMOID) || op == Op::kSIN || op == Op::kCOS;
}

class Encoder {
 public:
  Encoder(const EncodeInput& in, int area)
      : in_(in), code_(in.code), inputs_(static_cast<int>(in.code.inputs.size())), area_index_(area), area_(in.fusing.areas[area]), space_(area_) {
    out_.kind = area_.kind;
  }

  AreaCode run() {
    for (int i : area_.instrs) collect(i);
    space_.finish(area_, out_.products.empty() ? nullptr : &out_.products[0], in_.tile_elements);
    out_.space = space_.geometry;
    external_register_.assign(space_.externals.size(), -1);
    size_t next = 0;
    for (int i : area_.instrs) lower(i, &next);
    out_.ub_bytes = allocate_ub(prologue_, ops_, &registers_, out_.space);
    for (Product& p : out_.products) place_packed(&p);
    pack(prologue_, &out_.prologue_words, &out_.prologue_instr);
    pack(ops_, &out_.words, &out_.instr);
    return std::move(out_);
  }

  AreaCode run_move() {
    const int i = area_.instrs[0];
    out_.move = i;
    for (int32_t o : code_.instrs[i].operands) {
      out_.operands.push_back(memory_slot(o));
      out_.operand_strides.push_back(access(o).strides);
    }
    out_.operands.push_back(memory_slot(code_.value_of(i)));
    out_.slots.back().written = true;
    const int64_t n = code_.instrs[i].shape.size();
    out_.space.cols = out_.space.group_rows = out_.space.block_rows = out_.space.tile_rows = 1;
    out_.space.cols = out_.space.tile_cols = n;
    out_.cost_ns = 0.3 * static_cast<double>(n);
    hooks_after(i, out_.operands.back());
    return std::move(out_);
  }

 private:
  // An operand of a tile instruction: a result of the area (by instruction) or an external.
  struct Ref {
    int32_t instr = -1, external = -1;
  };

  const Access& access(int32_t value) const { return in_.fusing.resolved.access[value]; }
  bool made_here(int32_t root) const {
    const int i = root - inputs_;
    return i >= 0 && in_.fusing.area_of[i] == area_index_;
  }
  bool is_immediate(int32_t root) const {
    const int i = root - inputs_;
    return i >= 0 && in_.fusing.resolved.work[i] == Work::kImmediate;
  }

  // ---- operands -------------------------------------------------------------------------------------------------------------------

  void collect(int i) {
    const Instr& in = code_.instrs[i];
    if (in.op == Op::kMATMUL) return add_product(i);
    const int64_t scale = in_.fusing.extent[i] == Extent::kRow && !is_reduction(in.op) ? area_.cols : 1;
    if (in.op == Op::kFULL) refs_.push_back(literal(i, in.dtype));
    for (size_t k = 0; k < in.operands.size(); ++k) refs_.push_back(in.operands[k] < 0 ? literal(i, operand_dtype(in)) : operand(i, k, scale));
  }

  Ref literal(int i, DType dtype) {
    External e;
    e.immediate = i;
    e.dtype = dtype;
    return {-1, space_.add(e, Dims{}, Dims{}, 1)};
  }

  Ref operand(int i, size_t k, int64_t scale) {
    const Access a = operand_access(code_, in_.fusing.resolved, i, k);
    const DType dtype = dtype_of(code_, code_.instrs[i].operands[k]);
    if (made_here(a.root)) return {a.root - inputs_, -1};
    if (is_immediate(a.root)) return literal(a.root - inputs_, dtype);
    External e;
    e.root = a.root;
    e.offset = a.offset;
    e.dtype = dtype;
    return {-1, space_.add(e, space_of(code_, in_.fusing.resolved, i), a.strides, scale)};
  }

  DType operand_dtype(const Instr& in) const {
    for (int32_t o : in.operands)
      if (o >= 0) return dtype_of(code_, o);
    return in.dtype;
  }

  // ---- slots and registers --------------------------------------------------------------------------------------------------------

  GlobalSlot root_slot(int32_t root) const {
    GlobalSlot s;
    s.value = root;
    const int i = root - inputs_;
    s.kind = i >= 0 && is_immediate(root) ? GlobalSlot::kImmediate : in_.keep[root] || !in_.stored[root] ? GlobalSlot::kValue : GlobalSlot::kWorkspace;
    if (s.kind == GlobalSlot::kImmediate) s.value = i;
    return s;
  }

  int32_t add_slot(const GlobalSlot& s) {
    out_.slots.push_back(s);
    return static_cast<int32_t>(out_.slots.size()) - 1;
  }

  // A whole value in memory, for moves and products.
  int32_t memory_slot(int32_t value) {
    const Access& a = access(value);
    GlobalSlot s = root_slot(a.root);
    s.dtype = dtype_of(code_, value);
    s.offset = a.offset * item_size(s.dtype);
    return add_slot(s);
  }

  int32_t constant_slot(double value, DType dtype) {
    GlobalSlot s;
    s.kind = GlobalSlot::kConstant;
    s.dtype = dtype;
    s.value = static_cast<int32_t>(out_.constants.size());
    out_.constants.push_back({value, dtype});
    return add_slot(s);
  }

  int32_t add_register(Span span, DType dtype, int32_t slot = -1) {
    registers_.push_back({slot, span, dtype, false, -1});
    return static_cast<int32_t>(registers_.size()) - 1;
  }

  bool used_in_place(const External& e) const {
    if (!e.contiguous) return false;
    return e.span == Span::kFull ? !out_.space.narrow() : e.span == Span::kCols ? out_.space.tile_rows == 1 : true;
  }

  // The register of an external; loads it at its first use, `into` a result where one is given and a load is needed.
  int32_t external(int32_t index, int32_t instr, int32_t into = -1) {
    int32_t& reg = external_register_[index];
    if (reg >= 0) return reg;
    const External& e = space_.externals[index];
    GlobalSlot slot = e.immediate >= 0 ? GlobalSlot{} : root_slot(e.root);
    if (e.immediate >= 0) {
      slot.kind = GlobalSlot::kImmediate;
      slot.value = e.immediate;
    }
    const bool bound = used_in_place(e), invariant = e.span == Span::kCols && !bound && out_.space.tile_cols == out_.space.cols;
    const bool repeated = invariant && e.contiguous;  // a row used by all rows of the tile
    space_.describe(e, bound || repeated, &slot, &out_.axes);
    const int32_t number = add_slot(slot);
    const Span span = e.span == Span::kCols ? Span::kFull : e.span;
    if (bound) return reg = add_register(span, e.dtype, number);
    const int32_t source = add_register(repeated ? Span::kCols : span, e.dtype, number);
    TileOp load{.id = repeated ? Tile::kBroadcastY : Tile::kLoadView, .span = span, .dtype = e.dtype, .a = source, .instr = instr};
    if (invariant) {
      reg = load.dst = add_register(span, e.dtype);
      registers_[reg].pinned = true;
      prologue_.push_back(load);
      return reg;
    }
    // A load into a result is no load for later users: they may want the operand in UB, where the result's place may be reused.
    load.dst = into >= 0 ? into : add_register(span, e.dtype);
    ops_.push_back(load);
    if (into < 0) reg = load.dst;
    return load.dst;
  }

  int32_t ref(const Ref& r, int32_t instr) { return r.external >= 0 ? external(r.external, instr) : register_of(r.instr); }

  int32_t register_of(int i) const {
    for (const auto& [instr, reg] : results_)
      if (instr == i) return reg;
    return -1;
  }

  // The same elements, repeated to `span`.
  int32_t widen(int32_t reg, Span span, int32_t instr, int32_t into = -1) {
    if (registers_[reg].span == span) return reg;
    for (const auto& [from, to] : widened_)
      if (from == reg && into < 0 && registers_[to].span == span) return to;
    const DType dtype = registers_[reg].dtype;
    const int32_t dst = into >= 0 ? into : add_register(span, dtype);
    if (into < 0) widened_.push_back({reg, dst});
    emit({.id = registers_[reg].span == Span::kOne ? Tile::kBroadcastS : Tile::kBroadcastX, .span = span, .dtype = dtype, .dst = dst, .a = reg, .instr = instr});
    return dst;
  }

  void emit(const TileOp& op) { ops_.push_back(op); }

  // ---- instructions ---------------------------------------------------------------------------------------------------------------

  void lower(int i, size_t* next) {
    const Instr& in = code_.instrs[i];
    const Ref* refs = refs_.data() + *next;
    if (in.op != Op::kMATMUL) *next += in.op == Op::kFULL ? 1 : in.operands.size();
    const int64_t n = out_.space.rows * out_.space.cols;
    out_.cost_ns += (is_costly(in.op) ? kCostlyNs : kSimpleNs) * static_cast<double>(in_.fusing.extent[i] == Extent::kRow ? n / out_.space.cols : n);
    if (in_.fusing.extent[i] == Extent::kJoined) return lower_join(i, refs);
    const Span span = in_.fusing.extent[i] == Extent::kRow ? Span::kRow : Span::kFull;
    const int32_t dst = result_register(i, span);
    results_.push_back({i, dst});
    switch (op_info(in.op).cls) {
      case 'M': lower_matmul(i, dst); break;
      case 'R':
        if (span == Span::kRow) {
          lower_reduction(i, refs[0], dst);
        } else {
          lower_copy(i, refs[0], dst, span);
        }
        break;
      case 'B': lower_binary(i, refs, dst, span); break;
      case 'T': lower_select(i, refs, dst, span); break;
      case 'U':
        if (in.op != Op::kCOPY) {
          lower_unary(i, refs[0], dst, span);
          break;
        }
        [[fallthrough]];
      default: lower_copy(i, refs[0], dst, span);
    }
    if (store_after_) {
      emit({.id = Tile::kStoreView, .span = span, .dtype = in.dtype, .dst = add_register(span, in.dtype, *store_after_), .a = dst, .instr = i});
      store_after_.reset();
    }
    for (const HookSite& h : in_.hooks)
      if (h.instr == i && in_kinds(h.kind)) {
        out_.hooks.push_back({h.kind, h.slot, i, in.dtype, -1, 0});
        emit({.id = h.kind == kHookStats ? Tile::kHookStats : Tile::kHookCheck, .span = span, .dtype = in.dtype, .a = dst,
              .number = static_cast<int32_t>(out_.hooks.size()) - 1, .instr = i});
      }
  }

  static bool in_kinds(int kind) { return kind == kHookStats || kind == kHookCheck; }

  void hooks_after(int i, int32_t slot) {
    for (const HookSite& h : in_.hooks)
      if (h.instr == i && in_kinds(h.kind)) out_.hooks.push_back({h.kind, h.slot, i, code_.instrs[i].dtype, slot, code_.instrs[i].shape.size()});
  }

  // Where the result goes: straight to memory if it must be there and a tile of it is one run, else the UB.
  int32_t result_register(int i, Span span) {
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
    if (span == Span::kFull && out_.space.narrow()) {
      store_after_ = slot;
      return add_register(span, in.dtype);
    }
    return add_register(span, in.dtype, slot);
  }

  [[noreturn]] void no_kernel(const Instr& in, DType dtype) const {
    throw UserError(std::string(op_name(in.op)) + " is not defined for " + dtype_name(dtype), in.place);
  }

  void lower_unary(int i, const Ref& a, int32_t dst, Span span) {
    const Instr& in = code_.instrs[i];
    const int32_t x = widen(ref(a, i), span, i);
    const DType from = registers_[x].dtype;
    const int op = static_cast<int>(in.op);
    if (in.op == Op::kCAST ? !kernels().cast[int(from)][int(in.dtype)] : !kernels().unary[op][int(from)]) no_kernel(in, from);
    emit({.id = static_cast<Tile>(op), .span = span, .dtype = in.op == Op::kCAST ? in.dtype : from, .from = from, .dst = dst, .a = x, .instr = i});
  }

  void lower_copy(int i, const Ref& a, int32_t dst, Span span) {
    const bool fresh = a.external >= 0 && external_register_[a.external] < 0 && space_.externals[a.external].span == span;
    const int32_t x = a.external >= 0 ? external(a.external, i, fresh ? dst : -1) : register_of(a.instr);
    if (x == dst || widen(x, span, i, dst) == dst) return;
    emit({.id = Tile::kCopy, .span = span, .dtype = registers_[x].dtype, .dst = dst, .a = x, .instr = i});
  }

  void lower_binary(int i, const Ref* refs, int32_t dst, Span span) {
    const Instr& in = code_.instrs[i];
    int32_t a = ref(refs[0], i), b = ref(refs[1], i);
    const DType dtype = registers_[a].dtype;
    const int op = static_cast<int>(in.op), d = static_cast<int>(dtype);
    const Kernels& k = kernels();
    if (!k.binary[op][d]) no_kernel(in, dtype);
    Form form = Form::kTT;
    const Span sa = registers_[a].span, sb = registers_[b].span;
    if (sa == span && sb != span && k.binary_vs[op][d]) {
      form = sb == Span::kOne ? Form::kTS : Form::kTX;
    } else if (sb == span && sa != span && k.binary_sv[op][d]) {
      form = sa == Span::kOne ? Form::kST : Form::kXT;
    } else if (sa != span && sb != span && sb == Span::kOne && k.binary_vs[op][d]) {
      a = widen(a, span, i);
      form = Form::kTS;
    } else {
      a = widen(a, span, i);
      b = widen(b, span, i);
    }
    emit({.id = static_cast<Tile>(op), .form = form, .span = span, .dtype = dtype, .dst = dst, .a = a, .b = b, .instr = i});
  }

  void lower_select(int i, const Ref* refs, int32_t dst, Span span) {
    const Instr& in = code_.instrs[i];
    if (!kernels().select[int(in.dtype)]) no_kernel(in, in.dtype);
    const int32_t c = widen(ref(refs[0], i), span, i), a = widen(ref(refs[1], i), span, i), b = widen(ref(refs[2], i), span, i);
    emit({.id = Tile::kSelect, .span = span, .dtype = in.dtype, .dst = dst, .a = c, .b = a, .c = b, .instr = i});
  }

  static Op partial_op(Op op) { return op == Op::kMEAN ? Op::kSUM : op; }

  // In float32 for halves.
  int32_t computable(int32_t reg, int i) {
    const DType from = registers_[reg].dtype, to = compute_dtype(from);
    if (to == from) return reg;
    const int32_t dst = add_register(registers_[reg].span, to);
    emit({.id = Tile::kCast, .span = registers_[reg].span, .dtype = to, .from = from, .dst = dst, .a = reg, .instr = i});
    return dst;
  }

  void lower_reduction(int i, const Ref& a, int32_t dst) {
    const Instr& in = code_.instrs[i];
    const int32_t x = computable(widen(ref(a, i), Span::kFull, i), i);
    const DType dtype = registers_[x].dtype;
    const Op op = partial_op(in.op);
    if (!kernels().reduce_row[int(op)][int(dtype)]) no_kernel(in, in.dtype);
    const bool cast = dtype != in.dtype, mean = in.op == Op::kMEAN;
    int32_t y = cast || mean ? add_register(Span::kRow, dtype) : dst;
    emit({.id = static_cast<Tile>(op), .span = Span::kRow, .dtype = dtype, .dst = y, .a = x, .instr = i});
    if (mean) {
      if (!kernels().binary_vs[int(Op::kDIV)][int(dtype)]) no_kernel(in, in.dtype);
      const int32_t count = add_register(Span::kOne, dtype, constant_slot(static_cast<double>(out_.space.cols), dtype));
      const int32_t quotient = cast ? add_register(Span::kRow, dtype) : dst;
      emit({.id = Tile::kDiv, .form = Form::kTS, .span = Span::kRow, .dtype = dtype, .dst = quotient, .a = y, .b = count, .instr = i});
      y = quotient;
    }
    if (cast) emit({.id = Tile::kCast, .span = Span::kRow, .dtype = in.dtype, .from = dtype, .dst = dst, .a = y, .instr = i});
  }

  void lower_join(int i, const Ref* refs) {
    const Instr& in = code_.instrs[i];
    const int32_t x = computable(widen(ref(refs[0], i), Span::kFull, i), i);
    const Reduction r = reduction_of(in, shape_of(code_, in.operands[0]));
    Join join;
    join.op = partial_op(in.op);
    join.row = r.inner == 1;
    join.dtype = registers_[x].dtype;
    join.out = in.dtype;
    join.outer = r.outer;
    join.width = r.inner;
    join.parts = join.row ? (r.count + 4095) / 4096 : out_.space.blocks;
    join.divisor = in.op == Op::kMEAN ? r.count : 0;
    join.direct = join.parts == 1 && join.dtype == join.out;
    const int op = static_cast<int>(join.op), d = static_cast<int>(join.dtype);
    if (!kernels().reduce_col[op][d] || !kernels().reduce_row[op][d] || (join.divisor && !kernels().binary_vs[int(Op::kDIV)][d])) no_kernel(in, in.dtype);
    GlobalSlot s = root_slot(code_.value_of(i));
    s.dtype = in.dtype;
    s.written = true;
    join.result = add_slot(s);
    constexpr int kToRow = static_cast<int>(Tile::kSumXJoin) - static_cast<int>(Op::kSUM), kToCol = static_cast<int>(Tile::kSumY) - static_cast<int>(Op::kSUM);
    emit({.id = static_cast<Tile>(op + (join.row ? kToRow : kToCol)), .span = Span::kFull, .dtype = join.dtype, .a = x,
          .number = static_cast<int32_t>(out_.joins.size()), .instr = i});
    out_.joins.push_back(join);
    hooks_after(i, join.result);
  }

  void lower_matmul(int i, int32_t dst) {
    const Instr& in = code_.instrs[i];
    const Product& p = out_.products[0];
    out_.cost_ns += kFlopNs * static_cast<double>(p.batches) * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
    const bool cast = p.dtype != in.dtype;
    const int32_t c = cast ? add_register(Span::kFull, p.dtype) : dst;
    emit({.id = Tile::kMatMul, .span = Span::kFull, .dtype = p.dtype, .dst = c, .number = 0, .instr = i});
    if (cast) emit({.id = Tile::kCast, .span = Span::kFull, .dtype = in.dtype, .from = p.dtype, .dst = dst, .a = c, .instr = i});
  }

  void add_product(int i) {
    const Instr& in = code_.instrs[i];
    const Dims &a = shape_of(code_, in.operands[0]), &b = shape_of(code_, in.operands[1]);
    const bool ta = in.attrs[0], tb = in.attrs[1];
    Product p;
    p.dtype = compute_dtype(in.dtype);
    p.m = in.shape[in.shape.rank - 2];
    p.n = in.shape[in.shape.rank - 1];
    p.k = a[a.rank - (ta ? 2 : 1)];
    const Dims sa = access(in.operands[0]).strides, sb = access(in.operands[1]).strides;
    p.a.row = sa[a.rank - (ta ? 1 : 2)];
    p.a.col = sa[a.rank - (ta ? 2 : 1)];
    p.b.row = sb[b.rank - (tb ? 1 : 2)];
    p.b.col = sb[b.rank - (tb ? 2 : 1)];
    p.a.slot = memory_slot(in.operands[0]);
    p.b.slot = memory_slot(in.operands[1]);
    batch_axes(in.shape, a, sa, b, sb, &p);
    out_.products.push_back(std::move(p));
  }

  // B is packed by the tiles if no part of it is used by two of them, else before them.
  void place_packed(Product* p) {
    if (p->dtype != DType::kF32) return;
    const Geometry& g = out_.space;
    const auto bytes = static_cast<int64_t>(kernels().packed_b_bytes(p->k, g.tile_cols));
    const bool one_use = g.rows == g.tile_rows ? p->batches == p->b.matrices : g.tile_rows % p->m == 0 && p->batches == p->b.matrices;
    if (!one_use || bytes > kPackedInTile) return;
    p->packed_ub = (out_.ub_bytes + 127) / 128 * 128;
    out_.ub_bytes = p->packed_ub + bytes;
  }

  // Batch axes of a product, innermost joined into m where A's rows go on and B stays (a weight used by all batches).
  void batch_axes(const Dims& shape, const Dims& a, const Dims& sa, const Dims& b, const Dims& sb, Product* p) {
    Dims batch_a, batch_b, batch;
    const auto outer = [](const Dims& d) {
      Dims o = d;
      o.rank = std::max(0, d.rank - 2);
      return o;
    };
    batch = outer(shape);
    batch_a = broadcast_strides(outer(a), outer(sa), batch);
    batch_b = broadcast_strides(outer(b), outer(sb), batch);
    for (int k = batch.rank - 1; k >= 0; --k) {
      const int64_t extent = batch[k];
      if (extent == 1) continue;
      if (p->axes.empty() && batch_b[k] == 0 && batch_a[k] == p->m * p->a.row) {
        p->m *= extent;
        continue;
      }
      p->axes.push_back({extent, batch_a[k], batch_b[k], batch_a[k] ? p->a.matrices : 0, batch_b[k] ? p->b.matrices : 0});
      p->batches *= extent;
      if (batch_a[k]) p->a.matrices *= extent;
      if (batch_b[k]) p->b.matrices *= extent;
    }
    std::reverse(p->axes.begin(), p->axes.end());
  }

  // ---- words ----------------------------------------------------------------------------------------------------------------------

  uint32_t operand_word(int32_t reg) const {
    if (reg < 0) return 0;
    const Register& r = registers_[reg];
    return r.slot >= 0 ? kGlobal | static_cast<uint32_t>(r.slot) : static_cast<uint32_t>(r.address / kUbUnit);
  }

  void pack(const std::vector<TileOp>& ops, std::vector<uint64_t>* words, std::vector<int32_t>* instr) const {
    words->reserve(ops.size() * 2 + 1);
    for (const TileOp& op : ops) {
      const uint8_t len = op.id == Tile::kSelect ? 3 : 2;
      const uint32_t b = op.number >= 0 && op.id != Tile::kMatMul ? static_cast<uint32_t>(op.number) : operand_word(op.b);
      const uint32_t a = op.id == Tile::kMatMul ? static_cast<uint32_t>(op.number) : operand_word(op.a);
      words->push_back(pack_head({op.id, operand_word(op.dst), op.form, op.span, static_cast<uint8_t>(op.dtype), static_cast<uint8_t>(op.from), len}));
      words->push_back(uint64_t(b) << 26 | a);
      if (len == 3) words->push_back(operand_word(op.c));
      instr->insert(instr->end(), len, op.instr);
    }
    words->push_back(0);
    instr->push_back(-1);
  }

  const EncodeInput& in_;
  const ProgramCode& code_;
  const int inputs_, area_index_;
  const Area& area_;
  TileSpace space_;
  AreaCode out_;
  std::vector<Ref> refs_;
  std::vector<Register> registers_;
  std::vector<int32_t> external_register_;
  std::vector<std::pair<int, int32_t>> results_;       // instruction, its register
  std::vector<std::pair<int32_t, int32_t>> widened_;   // register, the same repeated over the tile
  std::vector<TileOp> prologue_, ops_;
  std::optional<int32_t> store_after_;
};

}  // namespace

AreaCode encode(const EncodeInput& in, int area) {
  Encoder encoder(in, area);
  return in.fusing.areas[area].kind == AreaKind::kMove ? encoder.run_move() : encoder.run();
}

}  // namespace dvm
