// Tensor instructions as tile instructions.
#include <algorithm>

#include "encoder.h"
#include "kernels.h"
#include "optable.h"

namespace dvm {
namespace {

constexpr double kSimpleNs = 0.035, kCostlyNs = 0.2, kMemoryNs = 0.05, kMultiplyAddNs = 0.01;  // per element, one thread

bool is_costly(Op op) {
  return op == Op::kEXPM1 || op == Op::kTAN || op == Op::kATAN || op == Op::kFMOD || op == Op::kREMAINDER || op == Op::kRANDOM || op == Op::kPOW ||
         op == Op::kDIV || (op >= Op::kEXP && op <= Op::kSIGMOID) || op == Op::kSIN || op == Op::kCOS || op == Op::kLOG1P;
}

Op partial_op(Op op) { return op == Op::kMEAN ? Op::kSUM : op; }

[[noreturn]] void no_kernel(const Instr& in, DType dtype) {
  throw UserError(std::string(op_name(in.op)) + " is not defined for " + dtype_name(dtype) + "; cast it first", in.place);
}

bool can_divide(DType t) { return kernels().binary_vs[int(Op::kDIV)][int(t)]; }

}  // namespace

void Encoder::lower(int i, const Ref* refs) {
  const Instr& in = code_.instrs[i];
  const Extent extent = in_.fusing.extent[i];
  const bool per_row = extent == Extent::kRow && !is_reduction(in.op);
  const auto n = static_cast<double>(per_row ? out_.space.rows : out_.space.rows * out_.space.cols);
  out_.cost_ns += ((is_costly(in.op) ? kCostlyNs : kSimpleNs) + (in_.stored[code_.value_of(i)] ? kMemoryNs : 0)) * n;
  if (extent == Extent::kJoined) return lower_join(i, refs[0]);
  if (extent == Extent::kChained) return lower_chained(i, refs[0]);
  const Span span = extent == Extent::kRow ? Span::kRow : Span::kFull;
  const int32_t dst = result_register(i, span);
  results_.push_back({i, dst});
  switch (op_info(in.op).cls) {
    case 'M':
      if (out_.convolutions.empty()) lower_matmul(i, dst);
      else lower_convolution(i, dst);
      break;
    case 'B': lower_binary(i, refs, dst, span); break;
    case 'T': lower_select(i, refs, dst, span); break;
    case 'U':
      if (in.op == Op::kCOPY) lower_copy(i, refs[0], dst, span);
      else lower_unary(i, refs[0], dst, span);
      break;
    case 'R':
      if (span == Span::kRow) {
        lower_reduction(i, refs[0], dst);
        break;
      }
      [[fallthrough]];  // over one element
    default:
      if (in.op == Op::kRANDOM) lower_random(i, dst, span);
      else lower_copy(i, refs[0], dst, span);
  }
  if (store_after_) {
    emit({.id = is_run(span) ? Tile::kStore : Tile::kStoreView,
          .span = span,
          .dtype = in.dtype,
          .dst = add_register(span, in.dtype, *store_after_),
          .a = dst,
          .instr = i});
    store_after_.reset();
  }
  hooks_in_tile(i, dst, span);
}

void Encoder::count_loads() {
  const auto n = static_cast<double>(out_.space.rows * out_.space.cols);
  for (const External& e : space_.externals) out_.cost_ns += e.span == Span::kFull ? kMemoryNs * n : 0;
}

void Encoder::lower_unary(int i, const Ref& a, int32_t dst, Span span) {
  const Instr& in = code_.instrs[i];
  const int32_t x = widen(ref(a, i), span, i);
  const DType from = registers_[x].dtype;
  if (in.op == Op::kCAST) {
    cast(x, in.dtype, i, dst);
    return;
  }
  if (!kernels().unary[int(in.op)][int(from)]) no_kernel(in, from);
  emit({.id = static_cast<Tile>(in.op), .span = span, .dtype = from, .dst = dst, .a = x, .instr = i});
}

// In another dtype, if it is not in that already.
int32_t Encoder::cast(int32_t reg, DType to, int32_t instr, int32_t into) {
  const DType from = registers_[reg].dtype;
  if (from == to && into < 0) return reg;
  if (const DType next = next_cast(in_.profile, from, to); next != to) return cast(cast(reg, next, instr), to, instr, into);
  const Span span = registers_[reg].span;
  const int32_t dst = into >= 0 ? into : add_register(span, to);
  emit({.id = Tile::kCast, .span = span, .dtype = to, .from = from, .dst = dst, .a = reg, .instr = instr});
  return dst;
}

void Encoder::lower_random(int i, int32_t dst, Span span) {
  emit({.id = Tile::kRandom, .span = span, .dtype = code_.instrs[i].dtype, .dst = dst, .number = i, .instr = i});
}

void Encoder::lower_copy(int i, const Ref& a, int32_t dst, Span span) {
  int32_t x;
  if (a.external >= 0) {
    const bool fresh = external_register_[a.external] < 0 && space_.externals[a.external].span == span;
    x = external(a.external, i, fresh ? dst : -1);
  } else {
    x = register_of(a.instr);
  }
  if (x == dst || widen(x, span, i, dst) == dst) return;
  emit({.id = Tile::kCopy, .span = span, .dtype = registers_[x].dtype, .dst = dst, .a = x, .instr = i});
}

void Encoder::lower_binary(int i, const Ref* refs, int32_t dst, Span span) {
  const Instr& in = code_.instrs[i];
  int32_t a = ref(refs[0], i), b = ref(refs[1], i);
  const DType dtype = registers_[a].dtype;
  if (!kernels().binary[int(in.op)][int(dtype)]) no_kernel(in, dtype);
  Form form = Form::kTT;
  // If both are narrower than the result, one is repeated.
  if (registers_[a].span != span && registers_[b].span != span) a = widen(a, span, i);
  if (registers_[b].span != span) form = registers_[b].span == Span::kOne ? Form::kTS : Form::kTX;
  else if (registers_[a].span != span) form = registers_[a].span == Span::kOne ? Form::kST : Form::kXT;
  emit({.id = static_cast<Tile>(in.op), .form = form, .span = span, .dtype = dtype, .dst = dst, .a = a, .b = b, .instr = i});
}

void Encoder::lower_select(int i, const Ref* refs, int32_t dst, Span span) {
  const Instr& in = code_.instrs[i];
  if (!kernels().select[int(in.dtype)]) no_kernel(in, in.dtype);
  const int32_t c = widen(ref(refs[0], i), span, i), a = widen(ref(refs[1], i), span, i), b = widen(ref(refs[2], i), span, i);
  emit({.id = Tile::kSelect, .span = span, .dtype = in.dtype, .dst = dst, .a = c, .b = a, .c = b, .instr = i});
}

void Encoder::lower_reduction(int i, const Ref& a, int32_t dst) {
  const Instr& in = code_.instrs[i];
  const DType dtype = compute_dtype(in.dtype);
  const int32_t x = cast(widen(ref(a, i), Span::kFull, i), dtype, i);
  const Op op = partial_op(in.op);
  const bool mean = in.op == Op::kMEAN, halves = dtype != in.dtype;
  if (!kernels().reduce_row[int(op)][int(dtype)] || (mean && !can_divide(dtype))) no_kernel(in, in.dtype);
  int32_t y = mean || halves ? add_register(Span::kRow, dtype) : dst;
  if (out_.narrows && op == Op::kSUM) emit({.id = Tile::kTail, .span = Span::kFull, .dtype = dtype, .a = x, .number = 0, .instr = i});
  emit({.id = static_cast<Tile>(op), .span = Span::kRow, .dtype = dtype, .dst = y, .a = x, .instr = i});
  if (mean) {
    const int32_t count = add_register(Span::kOne, dtype, constant_slot(static_cast<double>(out_.space.cols), dtype));
    const int32_t quotient = halves ? add_register(Span::kRow, dtype) : dst;
    emit({.id = Tile::kDiv, .form = Form::kTS, .span = Span::kRow, .dtype = dtype, .dst = quotient, .a = y, .b = count, .instr = i});
    y = quotient;
  }
  if (halves) cast(y, in.dtype, i, dst);
}

void Encoder::lower_join(int i, const Ref& a) {
  const Instr& in = code_.instrs[i];
  const Reduction r = reduction_of(in, shape_of(code_, in.operands[0]));
  Join join;
  join.op = partial_op(in.op);
  join.row = r.inner == 1;
  join.dtype = compute_dtype(in.dtype);
  join.out = in.dtype;
  join.outer = r.outer;
  join.width = r.inner;
  join.parts = join.row ? (r.count + kReduceBlock - 1) / kReduceBlock : out_.space.blocks;
  join.divisor = in.op == Op::kMEAN ? r.count : 0;
  join.direct = join.parts == 1 && join.dtype == join.out;
  const int op = static_cast<int>(join.op), d = static_cast<int>(join.dtype);
  if (!kernels().reduce_col[op][d] || !kernels().reduce_row[op][d] || (join.divisor && !can_divide(join.dtype))) no_kernel(in, in.dtype);
  const int32_t x = cast(widen(ref(a, i), Span::kFull, i), join.dtype, i);
  GlobalSlot s = root_slot(code_.value_of(i));
  s.dtype = in.dtype;
  s.written = true;
  join.result = add_slot(s);
  constexpr int kToRow = static_cast<int>(Tile::kSumXJoin) - static_cast<int>(Op::kSUM), kToCol = static_cast<int>(Tile::kSumY) - static_cast<int>(Op::kSUM);
  emit({.id = static_cast<Tile>(op + (join.row ? kToRow : kToCol)),
        .span = Span::kFull,
        .dtype = join.dtype,
        .a = x,
        .number = static_cast<int32_t>(out_.joins.size()),
        .instr = i});
  out_.joins.push_back(join);
  hooks_after(i, join.result);
}

// The result of halves is rounded by the instruction itself.
void Encoder::lower_matmul(int i, int32_t dst) {
  const int32_t number = products_;
  const Product& p = next_product();
  out_.cost_ns += kMultiplyAddNs * static_cast<double>(p.batches * p.m) * static_cast<double>(p.n * p.k);
  emit({.id = Tile::kMatMul, .span = Span::kFull, .dtype = p.dtype, .dst = dst, .number = number, .instr = i});
}

void Encoder::lower_chained(int i, const Ref& a) {
  const int32_t number = products_;
  const Product& p = next_product();
  out_.cost_ns += kMultiplyAddNs * static_cast<double>(p.batches * p.m) * static_cast<double>(p.n * p.k);
  const int32_t x = widen(ref(a, i), Span::kFull, i);
  if (out_.narrows) emit({.id = Tile::kTail, .span = Span::kFull, .dtype = p.dtype, .a = x, .number = 0, .instr = i});
  GlobalSlot s = root_slot(code_.value_of(i));
  s.dtype = code_.instrs[i].dtype;
  s.written = true;
  s.row_step = p.n * item_size(s.dtype);
  const int32_t slot = add_slot(s);
  emit({.id = Tile::kMatMul, .span = Span::kFull, .dtype = p.dtype, .dst = add_register(Span::kFull, s.dtype, slot), .b = x, .number = number, .instr = i});
  hooks_after(i, slot);
}

void Encoder::lower_convolution(int i, int32_t dst) {
  const Instr& in = code_.instrs[i];
  const Convolution& v = out_.convolutions[0];
  out_.cost_ns += kMultiplyAddNs * static_cast<double>(v.batches * v.m) * static_cast<double>(v.n) * static_cast<double>(v.k * v.images);
  const bool halves = v.dtype != in.dtype;
  const int32_t c = halves ? add_register(Span::kFull, v.dtype) : dst;
  emit({.id = static_cast<Tile>(in.op), .span = Span::kFull, .dtype = v.dtype, .dst = c, .number = 0, .instr = i});
  if (halves) cast(c, in.dtype, i, dst);
}

// ---- hooks --------------------------------------------------------------------------------------------------------------------------

bool Encoder::hooked(int i) const {
  return std::any_of(in_.hooks.begin(), in_.hooks.end(), [i](const HookSite& h) { return h.instr == i; });
}

void Encoder::hooks_in_tile(int i, int32_t reg, Span span) {
  for (const HookSite& h : in_.hooks) {
    if (h.instr != i || (h.kind != kHookStats && h.kind != kHookCheck)) continue;
    emit({.id = h.kind == kHookStats ? Tile::kHookStats : Tile::kHookCheck,
          .span = span,
          .dtype = code_.instrs[i].dtype,
          .a = reg,
          .number = static_cast<int32_t>(out_.hooks.size()),
          .instr = i});
    out_.hooks.push_back({h.kind, h.slot, i, code_.instrs[i].dtype, -1, 0});
  }
}

// Of a result that is complete after the area only.
void Encoder::hooks_after(int i, int32_t slot) {
  for (const HookSite& h : in_.hooks)
    if (h.instr == i && (h.kind == kHookStats || h.kind == kHookCheck))
      out_.hooks.push_back({h.kind, h.slot, i, code_.instrs[i].dtype, slot, code_.instrs[i].shape.size()});
}

}  // namespace dvm
