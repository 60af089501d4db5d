// Shape and dtype inference: one rule per class of ops.def, called once for each instruction that is recorded.
#include "infer.h"

namespace dvm {

void check_size(const Context& c, const Dims& shape, DType t, const char* what) {
  int64_t bytes = std::max(1, item_size(t));
  for (int i = 0; i < shape.rank; ++i) {
    if (shape[i] < 0) c.fail(std::string(what) + " " + shape_text(shape) + " has a negative extent");
    if (shape[i] > 1 && (__builtin_mul_overflow(bytes, shape[i], &bytes) || bytes > kMaxBytes))
      c.fail(std::string(what) + " " + shape_text(shape) + " is too large");
  }
}

void broadcast_into(const Context& c, Dims& into, const Dims& other) {
  if (into == other) return;
  Dims r;
  r.rank = std::max(into.rank, other.rank);
  for (int i = 1; i <= r.rank; ++i) {
    const int64_t x = i <= into.rank ? into[into.rank - i] : 1, y = i <= other.rank ? other[other.rank - i] : 1;
    if (x != y && x != 1 && y != 1) {
      std::string all;
      for (size_t k = 0; k < c.in.size(); ++k)
        if (c.in[k].shape) all += (all.empty() ? "" : " and ") + c.type(k);
      c.fail(all + " do not broadcast: axis " + std::to_string(-i) + " has " + std::to_string(x) + " and " + std::to_string(y));
    }
    r[r.rank - i] = x == 1 ? y : x;
  }
  into = r;
}

// Divisions instead of products: nothing overflows.
void check_range(const Context& c, int axis, int64_t size, int64_t start, int64_t step, int64_t extent) {
  if (extent == 0) return;
  const bool starts = start >= 0 && start < size;
  const int64_t more = !starts ? -1 : step == 0 ? INT64_MAX : step > 0 ? (size - 1 - start) / step : -(start / step);
  if (more < extent - 1)
    c.fail("start " + std::to_string(start) + ", step " + std::to_string(step) + ", extent " + std::to_string(extent) + " leaves axis " + std::to_string(axis) +
           " of extent " + std::to_string(size));
}

namespace {

void infer_unary(const Context& c) {
  const DType t = c.in[0].dtype;
  c.instr.shape = c.shape(0);
  if (c.instr.op == Op::kCAST) return c.result_dtype();
  if (c.instr.op != Op::kCOPY) c.supported(kernels().unary[static_cast<size_t>(c.instr.op)], t);
}

void infer_binary(const Context& c) {
  const bool imm_a = !c.in[0].shape, imm_b = !c.in[1].shape;
  if (imm_a && imm_b) c.fail("both operands are immediates");
  c.imm_count(imm_a || imm_b ? 1 : 0, "the side that is no tensor");
  const size_t first = imm_a ? 1 : 0;
  if (!imm_a && !imm_b && c.in[0].dtype != c.in[1].dtype) c.fail("operands differ in dtype: " + c.type(0) + " and " + c.type(1) + "; cast one of them");
  c.supported(kernels().binary[static_cast<size_t>(c.instr.op)], c.in[first].dtype, first);
  c.instr.shape = c.shape(first);
  if (!imm_a && !imm_b) broadcast_into(c, c.instr.shape, c.shape(1));
}

void infer_select(const Context& c) {
  if (c.in[0].dtype != DType::kBool) c.fail("the condition must be bool, got " + c.type(0));
  if (c.in[1].dtype != c.in[2].dtype) c.fail("the two choices differ in dtype: " + c.type(1) + " and " + c.type(2) + "; cast one of them");
  c.supported(kernels().select, c.in[1].dtype, 1);
  Dims shape = c.shape(0);
  broadcast_into(c, shape, c.shape(1));
  broadcast_into(c, shape, c.shape(2));
  c.instr.shape = shape;
}

void infer_reduction(const Context& c) {
  const auto& attrs = c.instr.attrs;
  const Dims& a = c.shape(0);
  const DType t = c.in[0].dtype;
  if (attrs.size() < 2) c.fail("needs keepdims and at least one axis");
  if (attrs[0] != 0 && attrs[0] != 1) c.fail("keepdims must be 0 or 1, got " + std::to_string(attrs[0]));
  if (c.instr.op == Op::kMEAN && !is_float(t)) c.fail("does not take " + c.type(0) + "; cast it to a float dtype first");
  const Op kernel = c.instr.op == Op::kMEAN ? Op::kSUM : c.instr.op;
  c.supported(kernels().reduce_row[static_cast<size_t>(kernel)], compute_dtype(t));
  for (size_t i = 1; i < attrs.size(); ++i) {
    const int axis = c.axis(attrs[i], a.rank);
    if (i > 1 && attrs[i] != attrs[i - 1] + 1) c.fail("axes must be ascending and adjacent (transpose first)");
    if (a[axis] == 0 && (c.instr.op == Op::kMAX || c.instr.op == Op::kMIN)) c.fail("axis " + std::to_string(axis) + " of " + c.type(0) + " is empty");
  }
  Dims r;
  for (int i = 0; i < a.rank; ++i) {
    const bool reduced = i >= attrs[1] && i <= attrs.back();
    if (!reduced) r[r.rank++] = a[i];
    else if (attrs[0]) r[r.rank++] = 1;
  }
  c.instr.shape = r;
}

void infer_matmul(const Context& c) {
  c.attr_count(2, "transpose_a, transpose_b");
  const int64_t ta = c.instr.attrs[0], tb = c.instr.attrs[1];
  if (ta < 0 || ta > 1 || tb < 0 || tb > 1) c.fail("transpose_a and transpose_b must be 0 or 1");
  const Dims &a = c.shape(0), &b = c.shape(1);
  if (a.rank < 2 || b.rank < 2) c.fail("needs operands of rank 2 or more, got " + c.type(0) + " and " + c.type(1) + " (reshape a vector to one row or column)");
  const DType t = c.in[0].dtype;
  if (t != c.in[1].dtype) c.fail("operands differ in dtype: " + c.type(0) + " and " + c.type(1) + "; cast one of them");
  const int64_t m = a[a.rank - (ta ? 1 : 2)], k = a[a.rank - (ta ? 2 : 1)];
  const int64_t kb = b[b.rank - (tb ? 1 : 2)], n = b[b.rank - (tb ? 2 : 1)];
  if (k != kb)
    c.fail(c.type(0) + (ta ? " (transposed)" : "") + " @ " + c.type(1) + (tb ? " (transposed)" : "") + ": inner extents " + std::to_string(k) + " and " +
           std::to_string(kb) + " differ");
  Dims batch = a, batch_b = b;
  batch.rank -= 2;
  batch_b.rank -= 2;
  broadcast_into(c, batch, batch_b);
  batch[batch.rank++] = m;
  batch[batch.rank++] = n;
  c.instr.shape = batch;
}

void infer_view(const Context& c) {
  const Dims& a = c.shape(0);
  Dims& r = c.instr.shape;
  const auto& attrs = c.instr.attrs;
  switch (c.instr.op) {
    case Op::kRESHAPE:
      if (a.size() != r.size()) c.fail(c.type(0) + " has " + std::to_string(a.size()) + " elements, " + shape_text(r) + " has " + std::to_string(r.size()));
      return;
    case Op::kTRANSPOSE: {
      c.attr_count(static_cast<size_t>(a.rank), "the permutation of the operand's axes");
      unsigned seen = 0;
      Dims out;
      out.rank = a.rank;
      for (int i = 0; i < a.rank; ++i) {
        const int axis = c.axis(attrs[static_cast<size_t>(i)], a.rank);
        if (seen & 1u << axis) c.fail("axis " + std::to_string(axis) + " appears twice in the permutation");
        seen |= 1u << axis;
        out[i] = a[axis];
      }
      r = out;
      return;
    }
    case Op::kSLICE:
      c.attr_count(2 * static_cast<size_t>(a.rank), "start and step per axis");
      if (r.rank != a.rank) c.fail("result " + shape_text(r) + " and operand " + c.type(0) + " differ in rank");
      for (int i = 0; i < a.rank; ++i) check_range(c, i, a[i], attrs[2 * static_cast<size_t>(i)], attrs[2 * static_cast<size_t>(i) + 1], r[i]);
      return;
    default: {  // BROADCAST
      bool fits = a.rank <= r.rank;
      for (int i = 1; fits && i <= a.rank; ++i) fits = a[a.rank - i] == 1 || a[a.rank - i] == r[r.rank - i];
      if (!fits) c.fail(c.type(0) + " does not broadcast to " + shape_text(r));
    }
  }
}

void infer_nullary(const Context& c) {
  c.result_dtype();
  if (c.instr.op == Op::kFULL) return c.imm_count(1, "the value");
  if (c.instr.op == Op::kRANDOM) {
    c.imm_count(2, "seed, offset");
    if (!kernels().random[static_cast<size_t>(c.instr.dtype)]) c.fail("makes float32, float64, int32 or int64, not " + std::string(dtype_name(c.instr.dtype)));
    for (const Imm& imm : c.instr.imms)
      if (!imm.is_int) c.fail("takes integers as seed and offset");
    return;
  }
  c.attr_count(1, "axis");
  c.axis(c.instr.attrs[0], c.instr.shape.rank);
  if (c.instr.dtype == DType::kBool) c.fail("does not make bool");
}

}  // namespace

void infer(Instr& instr, const Operands& operands) {
  const Context c{instr, operands};
  const OpInfo& info = op_info(instr.op);
  if (!info.name) throw UserError("no opcode " + std::to_string(static_cast<int>(instr.op)), instr.place);
  if (info.arity >= 0 && operands.size() != static_cast<size_t>(info.arity))
    c.fail("takes " + std::to_string(info.arity) + " operands, got " + std::to_string(operands.size()));
  if (info.arity < 0 && operands.empty()) c.fail("needs at least one operand");
  if (info.cls != 'B')
    for (const OperandType& o : operands)
      if (!o.shape) c.fail("takes tensors only, got an immediate");
  if (instr.shape.rank) check_size(c, instr.shape, DType::kI8, "shape");
  switch (info.cls) {
    case 'U': infer_unary(c); break;
    case 'B': infer_binary(c); break;
    case 'T': infer_select(c); break;
    case 'R': infer_reduction(c); break;
    case 'M': c.instr.op == Op::kMATMUL ? infer_matmul(c) : infer_convolution(c); break;
    case 'V': infer_view(c); break;
    case 'D': infer_movement(c); break;
    default: infer_nullary(c); break;
  }
  if (info.rule == DtypeRule::bool_) instr.dtype = DType::kBool;
  // A binary op's tensor side may be the second; SELECT's first operand is the condition.
  if (info.rule == DtypeRule::same) instr.dtype = operands[info.cls == 'T' || !operands[0].shape ? 1 : 0].dtype;
  check_size(c, instr.shape, instr.dtype, "result");
}

}  // namespace dvm
