// Shape and dtype rules of data movement (class D).
#include "infer.h"

namespace dvm {
namespace {

void infer_concat(const Context& c) {
  c.attr_count(1, "axis");
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

void infer_pad(const Context& c) {
  const Dims &a = c.shape(0), &r = c.instr.shape;
  c.attr_count(static_cast<size_t>(a.rank), "elements before the operand's, per axis");
  c.imm_count(1, "the value around it");
  if (r.rank != a.rank) c.fail("result " + shape_text(r) + " and operand " + c.type(0) + " differ in rank");
  for (int i = 0; i < a.rank; ++i) {
    const int64_t before = c.instr.attrs[static_cast<size_t>(i)];
    if (before < 0 || a[i] > r[i] || before > r[i] - a[i])
      c.fail(std::to_string(before) + " elements before axis " + std::to_string(i) + " of " + c.type(0) + " leave " + shape_text(r));
  }
}

void flag(const Context& c, size_t attr, const char* name) {
  if (c.instr.attrs[attr] != 0 && c.instr.attrs[attr] != 1) c.fail(std::string(name) + " must be 0 or 1, got " + std::to_string(c.instr.attrs[attr]));
}

void infer_cumsum(const Context& c) {
  c.attr_count(3, "axis, exclusive, reverse");
  c.axis(c.instr.attrs[0], c.shape(0).rank);
  flag(c, 1, "exclusive");
  flag(c, 2, "reverse");
  if (c.in[0].dtype == DType::kBool) c.fail("does not take " + c.type(0) + "; cast it first");
  c.instr.shape = c.shape(0);
}

// Operands `a` and `b` have one shape, and one dtype unless one of them is the index.
void same_shape(const Context& c, size_t a, size_t b) {
  if (!(c.shape(a) == c.shape(b))) c.fail("operands " + c.type(a) + " and " + c.type(b) + " must have one shape (broadcast one first)");
}

// The index names elements of a tensor of shape `target`: it has its rank, and no more elements on the other axes.
void check_elements(const Context& c, const Dims& target) {
  c.attr_count(1, "axis");
  check_index(c, 1);
  const Dims& index = c.shape(1);
  bool fits = index.rank == target.rank;
  const int axis = c.axis(c.instr.attrs[0], target.rank);
  for (int i = 0; fits && i < index.rank; ++i) fits = i == axis || index[i] <= target[i];
  if (!fits) c.fail("an index " + c.type(1) + " along axis " + std::to_string(axis) + " does not fit " + shape_text(target));
  if (target[axis] == 0 && index.size() > 0) c.fail("axis " + std::to_string(axis) + " of " + shape_text(target) + " is empty");
}

void infer_gather_elements(const Context& c) {
  check_elements(c, c.shape(0));
  c.instr.shape = c.shape(1);
}

void infer_scatter_add_elements(const Context& c) {
  check_elements(c, c.instr.shape);
  same_shape(c, 0, 1);
  if (c.in[0].dtype == DType::kBool) c.fail("does not take " + c.type(0));
}

void infer_scatter_elements(const Context& c) {
  check_elements(c, c.shape(0));
  same_shape(c, 1, 2);
  c.instr.shape = c.shape(0);
}

void infer_scatter(const Context& c) {
  c.attr_count(1, "axis");
  check_index(c, 1);
  const Dims& a = c.shape(0);
  const int axis = c.axis(c.instr.attrs[0], a.rank);
  const Dims wanted = taken(c, a, axis, c.shape(1));
  if (!(c.shape(2) == wanted))
    c.fail("writing at " + c.type(1) + " along axis " + std::to_string(axis) + " of " + c.type(0) + " takes " + shape_text(wanted) + ", got " + c.type(2));
  if (a[axis] == 0 && c.shape(1).size() > 0) c.fail("axis " + std::to_string(axis) + " of " + c.type(0) + " is empty");
  c.instr.shape = a;
}

// The result holds positions along an axis of this extent.
void index_result(const Context& c, int64_t extent) {
  if (c.instr.dtype != DType::kI32 && c.instr.dtype != DType::kI64) c.fail("makes int32 or int64, not " + std::string(dtype_name(c.instr.dtype)));
  if (c.instr.dtype == DType::kI32 && extent > int64_t{1} << 31)
    c.fail("makes int64 of an axis of extent " + std::to_string(extent) + ": int32 does not hold every position");
}

void infer_arg_extreme(const Context& c) {
  c.attr_count(2, "keepdims, axis");
  flag(c, 0, "keepdims");
  const Dims& a = c.shape(0);
  const int axis = c.axis(c.instr.attrs[1], a.rank);
  index_result(c, a[axis]);
  if (a[axis] == 0) c.fail("axis " + std::to_string(axis) + " of " + c.type(0) + " is empty");
  Dims r;
  for (int i = 0; i < a.rank; ++i)
    if (i != axis) r[r.rank++] = a[i];
    else if (c.instr.attrs[0]) r[r.rank++] = 1;
  c.instr.shape = r;
}

void infer_order(const Context& c) {
  const bool topk = c.instr.op == Op::kTOPK;
  c.attr_count(topk ? 3 : 2, topk ? "axis, k, descending" : "axis, descending");
  flag(c, topk ? 2 : 1, "descending");
  Dims r = c.shape(0);
  const int axis = c.axis(c.instr.attrs[0], r.rank);
  if (c.instr.op != Op::kSORT) index_result(c, r[axis]);
  if (topk) {
    const int64_t k = c.instr.attrs[1];
    if (k < 0 || k > r[axis])
      c.fail(std::to_string(k) + " of the " + std::to_string(r[axis]) + " elements along axis " + std::to_string(axis) + " of " + c.type(0));
    r[axis] = k;
  }
  c.instr.shape = r;
}

}  // namespace

void infer_movement(const Context& c) {
  // The first operand and what is written into it.
  if (c.in.size() == 3 && c.in[0].dtype != c.in[2].dtype) c.fail("operands differ in dtype: " + c.type(0) + " and " + c.type(2) + "; cast one of them");
  switch (c.instr.op) {
    case Op::kPAD: return infer_pad(c);
    case Op::kCUMSUM: return infer_cumsum(c);
    case Op::kGATHER_ELEMENTS: return infer_gather_elements(c);
    case Op::kSCATTER: return infer_scatter(c);
    case Op::kSCATTER_ELEMENTS: return infer_scatter_elements(c);
    case Op::kSCATTER_ADD_ELEMENTS: return infer_scatter_add_elements(c);
    case Op::kARGMAX:
    case Op::kARGMIN: return infer_arg_extreme(c);
    case Op::kSORT:
    case Op::kARGSORT:
    case Op::kTOPK: return infer_order(c);
    case Op::kMAX_POOL2D:
    case Op::kMAX_POOL2D_GRAD:
    case Op::kAVG_POOL2D:
    case Op::kAVG_POOL2D_GRAD: return infer_pool(c);
    case Op::kCONCAT: return infer_concat(c);
    case Op::kUNSLICE: return infer_unslice(c);
    case Op::kGATHER: return infer_gather(c);
    case Op::kSCATTER_ADD: return infer_scatter_add(c);
    default: return infer_one_hot(c);
  }
}

}  // namespace dvm
