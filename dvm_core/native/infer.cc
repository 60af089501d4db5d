// Shape and dtype inference: one rule per class of ops.def, called once for each instruction that is recorded.
#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "optable.h"

namespace dvm {
namespace {

using Operands = std::vector<OperandType>;

// Larger arrays cannot be addressed; smaller products never overflow.
constexpr int64_t kMaxBytes = int64_t{1} << 46;

struct Context {
  Instr& instr;
  const Operands& in;

  [[noreturn]] void fail(const std::string& what) const { throw UserError(std::string(op_name(instr.op)) + ": " + what, instr.place); }
  std::string type(size_t i) const { return type_text(in[i].dtype, *in[i].shape); }
  const Dims& shape(size_t i) const { return *in[i].shape; }

  int axis(int64_t value, int rank, const char* what = "axis") const {
    if (value < 0 || value >= rank) fail(std::string(what) + " " + std::to_string(value) + " is out of range for rank " + std::to_string(rank));
    return static_cast<int>(value);
  }
  void attr_count(size_t n, const char* what) const {
    if (instr.attrs.size() != n) fail("takes " + std::to_string(n) + " attributes (" + what + "), got " + std::to_string(instr.attrs.size()));
  }
  void imm_count(size_t n, const char* what) const {
    if (instr.imms.size() != n) fail("takes " + std::to_string(n) + " immediates (" + what + "), got " + std::to_string(instr.imms.size()));
  }
  void result_dtype() const {
    if (!item_size(instr.dtype)) fail("needs a result dtype, got code " + std::to_string(static_cast<int>(instr.dtype)));
  }
  // `supported` is this op's row of a kernel table.
  template <class Fn>
  void supported(const Fn (&row)[kDTypes], DType t, size_t operand = 0) const {
    if (row[static_cast<size_t>(t)]) return;
    std::string names;
    for (int d = 1; d < kDTypes; ++d)
      if (row[d]) names += (names.empty() ? "" : ", ") + std::string(dtype_name(static_cast<DType>(d)));
    fail("does not take " + type(operand) + (names.empty() ? "" : "; it takes " + names + " (cast it first)"));
  }
};

// Throws if a shape has a negative extent or more elements than can be addressed.
void check_size(const Context& c, const Dims& shape, DType t, const char* what) {
  int64_t bytes = std::max(1, item_size(t));
  for (int i = 0; i < shape.rank; ++i) {
    if (shape[i] < 0) c.fail(std::string(what) + " " + shape_text(shape) + " has a negative extent");
    if (shape[i] > 1 && bytes > kMaxBytes / shape[i]) c.fail(std::string(what) + " " + shape_text(shape) + " is too large");
    if (shape[i] > 1) bytes *= shape[i];
  }
}

// NumPy broadcasting of `other` into `into`, axes aligned at the right.
void broadcast_into(const Context& c, Dims& into, const Dims& other) {
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
  Dims shape = c.shape(first);
  if (!imm_a && !imm_b) broadcast_into(c, shape, c.shape(1));
  c.instr.shape = shape;
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

// Bounds that keep every position of a window within 2^54.
constexpr int64_t kMaxStep = 1 << 20, kMaxBefore = int64_t{1} << 52, kMaxExtent = int64_t{1} << 31;

void check_window(const Context& c, std::initializer_list<const char*> positive, std::initializer_list<size_t> places) {
  auto place = places.begin();
  for (const char* what : positive) {
    const size_t first = *place++;
    for (size_t i = first; i < first + (what == std::string("groups") ? 1 : 2); ++i)
      if (const int64_t x = c.instr.attrs[i]; x < 1 || x > kMaxStep)
        c.fail(std::string(what) + " must be 1 to " + std::to_string(kMaxStep) + ", got " + std::to_string(x));
  }
}

void check_before(const Context& c, size_t first) {
  for (size_t i = first; i < first + 2; ++i)
    if (const int64_t x = c.instr.attrs[i]; x < -kMaxBefore || x > kMaxBefore) c.fail("padding of " + std::to_string(x) + " is out of range");
}

void check_planes(const Context& c, const Dims& shape, const std::string& what) {
  if (shape.rank != 4) c.fail("needs rank 4 (batch, channels, height, width), got " + what + " (reshape it)");
  for (int a = 2; a < 4; ++a)
    if (shape[a] > kMaxExtent) c.fail(what + " is too wide");
}

// CONV2D: image, weight, result; its gradient has the last two the other way round.
void infer_convolution(const Context& c) {
  c.attr_count(9, "stride, before, dilation and gap for y and x, groups");
  check_window(c, {"stride", "dilation", "gap", "groups"}, {0, 4, 6, 8});
  check_before(c, 2);
  const DType t = c.in[0].dtype;
  if (t != c.in[1].dtype) c.fail("operands differ in dtype: " + c.type(0) + " and " + c.type(1) + "; cast one of them");
  if (!is_float(t)) c.fail("does not take " + c.type(0) + "; cast both operands to a float dtype");
  const bool gradient = c.instr.op == Op::kCONV2D_WEIGHT;
  const Dims &image = c.shape(0), &weight = gradient ? c.instr.shape : c.shape(1), &out = gradient ? c.shape(1) : c.instr.shape;
  check_planes(c, image, c.type(0));
  check_planes(c, c.shape(1), c.type(1));
  check_planes(c, c.instr.shape, "result " + shape_text(c.instr.shape));
  const int64_t groups = c.instr.attrs[8];
  const std::string all =
      "image " + shape_text(image) + ", weight " + shape_text(weight) + " and result " + shape_text(out) + ", groups " + std::to_string(groups) + ": ";
  if (weight[2] < 1 || weight[3] < 1) c.fail(all + "the weight has no taps");
  if (image[0] != out[0]) c.fail(all + "the batches differ");
  if (out[1] != weight[0]) c.fail(all + "the result must have the weight's " + std::to_string(weight[0]) + " output channels");
  if (out[1] % groups != 0) c.fail(all + "groups must divide the output channels");
  if (image[1] % groups != 0 || image[1] / groups != weight[1])
    c.fail(all + "the weight must have " + std::to_string(image[1]) + " / " + std::to_string(groups) + " input channels");
}

void infer_pool(const Context& c) {
  const bool largest = c.instr.op == Op::kMAX_POOL2D || c.instr.op == Op::kMAX_POOL2D_GRAD;
  const bool gradient = c.instr.op == Op::kMAX_POOL2D_GRAD || c.instr.op == Op::kAVG_POOL2D_GRAD;
  c.attr_count(largest ? 8 : 10,
               largest ? "taps, stride, before and dilation for y and x" : "taps, stride, before and after for y and x, count padding, divisor");
  if (largest) check_window(c, {"taps", "stride", "dilation"}, {0, 2, 6});
  else check_window(c, {"taps", "stride"}, {0, 2});
  check_before(c, 4);
  if (!largest) check_before(c, 6);
  if (!largest && (c.instr.attrs[8] < 0 || c.instr.attrs[8] > 1)) c.fail("whether padding counts must be 0 or 1, got " + std::to_string(c.instr.attrs[8]));
  if (!largest && (c.instr.attrs[9] < 0 || c.instr.attrs[9] > kMaxBefore)) c.fail("a divisor of " + std::to_string(c.instr.attrs[9]) + " is out of range");
  const DType t = c.in[0].dtype;
  if (!is_float(t)) c.fail("does not take " + c.type(0) + "; cast it to a float dtype");
  if (c.in.size() > 2) c.fail("takes 1 or 2 operands, got " + std::to_string(c.in.size()));
  const size_t last = c.in.size() - 1;
  for (size_t i = 0; i <= last; ++i) check_planes(c, c.shape(i), c.type(i));
  check_planes(c, c.instr.shape, "result " + shape_text(c.instr.shape));
  if (c.in[last].dtype != t) c.fail("operands differ in dtype: " + c.type(0) + " and " + c.type(1) + "; cast one of them");
  if (last == 1 && !(c.shape(0) == (gradient ? c.instr.shape : c.shape(1))))
    c.fail(c.type(0) + " must have the shape of " + (gradient ? "the result " + shape_text(c.instr.shape) : c.type(1)));
  const Dims &image = gradient ? c.instr.shape : c.shape(0), &out = gradient ? c.shape(last) : c.instr.shape;
  if (image[0] != out[0] || image[1] != out[1]) c.fail("planes of " + shape_text(image) + " do not become planes of " + shape_text(out));
}

// The elements start, start + step, ... (extent of them) must lie in 0..size-1. Divisions instead of products: nothing overflows.
void check_range(const Context& c, int axis, int64_t size, int64_t start, int64_t step, int64_t extent) {
  if (extent == 0) return;
  const bool starts = start >= 0 && start < size;
  const int64_t more = !starts ? -1 : step == 0 ? INT64_MAX : step > 0 ? (size - 1 - start) / step : -(start / step);
  if (more < extent - 1)
    c.fail("start " + std::to_string(start) + ", step " + std::to_string(step) + ", extent " + std::to_string(extent) + " leaves axis " + std::to_string(axis) +
           " of extent " + std::to_string(size));
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

void infer_concat(const Context& c) {
  c.attr_count(1, "axis");
  if (c.in.empty()) c.fail("needs at least one operand");
  Dims r = c.shape(0);
  const int axis = c.axis(c.instr.attrs[0], r.rank);
  for (size_t k = 1; k < c.in.size(); ++k) {
    bool fits = c.in[k].dtype == c.in[0].dtype && c.shape(k).rank == r.rank;
    for (int i = 0; fits && i < r.rank; ++i) fits = i == axis || c.shape(k)[i] == r[i];
    if (!fits) c.fail("operand " + std::to_string(k) + " " + c.type(k) + " does not fit beside " + c.type(0) + " along axis " + std::to_string(axis));
    r[axis] += c.shape(k)[axis];
  }
  c.instr.shape = r;
}

void infer_unslice(const Context& c) {
  const Dims &a = c.shape(0), &r = c.instr.shape;
  c.attr_count(2 * static_cast<size_t>(a.rank), "start and step per axis");
  if (r.rank != a.rank) c.fail("result " + shape_text(r) + " and operand " + c.type(0) + " differ in rank");
  for (int i = 0; i < a.rank; ++i) {
    const int64_t start = c.instr.attrs[2 * static_cast<size_t>(i)], step = c.instr.attrs[2 * static_cast<size_t>(i) + 1];
    if (step == 0 && a[i] > 1) c.fail("step 0 puts " + std::to_string(a[i]) + " elements of axis " + std::to_string(i) + " in one place");
    check_range(c, i, r[i], start, step, a[i]);
  }
}

// The shape of take(a, index, axis).
Dims taken(const Context& c, const Dims& a, int axis, const Dims& index) {
  if (a.rank - 1 + index.rank > kMaxRank) c.fail("the result's rank " + std::to_string(a.rank - 1 + index.rank) + " is above " + std::to_string(kMaxRank));
  Dims r;
  for (int i = 0; i < axis; ++i) r[r.rank++] = a[i];
  for (int i = 0; i < index.rank; ++i) r[r.rank++] = index[i];
  for (int i = axis + 1; i < a.rank; ++i) r[r.rank++] = a[i];
  return r;
}

void check_index(const Context& c, size_t operand) {
  const DType t = c.in[operand].dtype;
  if (t != DType::kI32 && t != DType::kI64) c.fail("the index must be int32 or int64, got " + c.type(operand));
}

void infer_gather(const Context& c) {
  c.attr_count(1, "axis");
  check_index(c, 1);
  const int axis = c.axis(c.instr.attrs[0], c.shape(0).rank);
  if (c.shape(0)[axis] == 0 && c.shape(1).size() > 0) c.fail("axis " + std::to_string(axis) + " of " + c.type(0) + " is empty");
  c.instr.shape = taken(c, c.shape(0), axis, c.shape(1));
}

void infer_scatter_add(const Context& c) {
  c.attr_count(1, "axis");
  check_index(c, 1);
  if (c.in[0].dtype == DType::kBool) c.fail("does not take " + c.type(0));
  const int axis = c.axis(c.instr.attrs[0], c.instr.shape.rank);
  const Dims wanted = taken(c, c.instr.shape, axis, c.shape(1));
  if (!(c.shape(0) == wanted))
    c.fail("adding at " + c.type(1) + " along axis " + std::to_string(axis) + " of " + shape_text(c.instr.shape) + " takes " + shape_text(wanted) + ", got " +
           c.type(0));
}

void infer_one_hot(const Context& c) {
  c.attr_count(1, "depth");
  c.imm_count(2, "on, off");
  c.result_dtype();
  check_index(c, 0);
  if (c.shape(0).rank + 1 > kMaxRank) c.fail("the result's rank is above " + std::to_string(kMaxRank));
  Dims r = c.shape(0);
  r[r.rank++] = c.instr.attrs[0];
  c.instr.shape = r;
}

void infer_movement(const Context& c) {
  switch (c.instr.op) {
    case Op::kCONCAT: return infer_concat(c);
    case Op::kUNSLICE: return infer_unslice(c);
    case Op::kGATHER: return infer_gather(c);
    case Op::kSCATTER_ADD: return infer_scatter_add(c);
    case Op::kMAX_POOL2D:
    case Op::kMAX_POOL2D_GRAD:
    case Op::kAVG_POOL2D:
    case Op::kAVG_POOL2D_GRAD: return infer_pool(c);
    default: return infer_one_hot(c);
  }
}

void infer_nullary(const Context& c) {
  c.result_dtype();
  if (c.instr.op == Op::kFULL) return c.imm_count(1, "the value");
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
