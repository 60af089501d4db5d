#include "access.h"

#include "optable.h"

namespace dvm {
namespace {

// Strides of the same elements under another shape, or false if they do not lie regularly enough.
bool reshape_strides(const Dims& shape, const Dims& strides, const Dims& to, Dims* out) {
  out->rank = to.rank;
  int from_axis = 0;
  const auto skip_ones = [&] {
    while (from_axis < shape.rank && shape[from_axis] == 1) ++from_axis;
  };
  for (int axis = 0; axis < to.rank;) {
    if (to[axis] == 1) {
      (*out)[axis++] = 0;
      continue;
    }
    skip_ones();
    // The shortest groups of old and new axes with the same number of elements.
    int from_end = from_axis + 1, to_end = axis + 1;
    int64_t have = shape[from_axis], want = to[axis];
    while (have != want) {
      if (have < want) have *= shape[from_end++];
      else want *= to[to_end++];
    }
    // The old group must be one run: each stride spans the axes inside it.
    int64_t inner = 0, run = 0;
    bool first = true;
    for (int a = from_end - 1; a >= from_axis; --a) {
      if (shape[a] == 1) continue;
      if (first) inner = strides[a];
      else if (strides[a] != run) return false;
      first = false;
      run = strides[a] * shape[a];
    }
    int64_t step = inner;
    for (int a = to_end - 1; a >= axis; --a) {
      (*out)[a] = step;
      step *= to[a];
    }
    from_axis = from_end;
    axis = to_end;
  }
  return true;
}

// The access of a view, given that of its operand; false: only a copy can make it.
bool view_access(const Instr& in, const Access& a, const Dims& shape, DType dtype, Access* out) {
  *out = a;
  switch (in.op) {
    case Op::kTRANSPOSE:
      for (int i = 0; i < in.shape.rank; ++i) out->strides[i] = a.strides[static_cast<int>(in.attrs[i])];
      return true;
    case Op::kSLICE:
      // A step from which no element follows, and the start of nothing, may be any number.
      for (int i = 0; i < shape.rank; ++i) {
        if (in.shape[i] > 0) out->offset += in.attrs[2 * i] * a.strides[i];
        out->strides[i] = in.shape[i] > 1 ? in.attrs[2 * i + 1] * a.strides[i] : 0;
      }
      return true;
    case Op::kBROADCAST: out->strides = broadcast_strides(shape, a.strides, in.shape); return true;
    case Op::kRESHAPE:
      if (in.shape.size() == 0) {
        out->strides = contiguous_strides(in.shape);
        return true;
      }
      return reshape_strides(shape, a.strides, in.shape, &out->strides);
    case Op::kCOPY: return true;
    case Op::kCAST: return in.dtype == dtype;
    default: return false;
  }
}

bool may_be_view(Op op) { return op_info(op).cls == 'V' || op == Op::kCOPY || op == Op::kCAST; }

// Elementwise, and all it reads are immediates or made of them.
bool from_immediates(const ProgramCode& code, const Resolved& r, const Instr& in) {
  const char cls = op_info(in.op).cls;
  if (cls != 'U' && cls != 'B' && cls != 'T') return false;
  const int inputs = static_cast<int>(code.inputs.size());
  for (int32_t o : in.operands) {
    const int source = o < 0 ? -1 : r.access[o].root - inputs;
    if (o >= 0 && (source < 0 || !is_uniform(r.work[source]))) return false;
  }
  return true;
}

Work work_of(const ProgramCode& code, const Instr& in) {
  if (in.shape.size() == 0) return Work::kEmpty;
  if (is_reduction(in.op) && shape_of(code, in.operands[0]).size() == 0) return Work::kFill;
  switch (op_info(in.op).cls) {
    case 'M': {
      const Dims &a = shape_of(code, in.operands[0]), &b = shape_of(code, in.operands[1]);
      return a.size() == 0 || b.size() == 0 ? Work::kFill : Work::kMatMul;
    }
    case 'D': return Work::kMove;
    case 'N': return in.op == Op::kIOTA ? Work::kMove : Work::kTile;
    default: return Work::kTile;
  }
}

}  // namespace

Dims broadcast_strides(const Dims& from, const Dims& strides, const Dims& to) {
  Dims out;
  out.rank = to.rank;
  const int shift = to.rank - from.rank;
  for (int i = 0; i < to.rank; ++i) {
    const int j = i - shift;
    out[i] = j < 0 || from[j] == 1 ? 0 : strides[j];
  }
  return out;
}

const Dims& space_of(const ProgramCode& code, const Resolved& r, int instr) {
  const Instr& in = code.instrs[static_cast<size_t>(instr)];
  if (is_reduction(in.op)) return shape_of(code, in.operands[0]);
  if (in.op != Op::kRESHAPE) return in.shape;
  Access seen;
  const Dims& source = shape_of(code, in.operands[0]);
  return view_access(in, r.access[in.operands[0]], source, in.dtype, &seen) ? in.shape : source;
}

Access operand_access(const ProgramCode& code, const Resolved& r, int instr, size_t k) {
  const Instr& in = code.instrs[static_cast<size_t>(instr)];
  const int32_t value = in.operands[k];
  const Dims& shape = shape_of(code, value);
  const Access& access = r.access[value];
  if (op_info(in.op).cls == 'V') {
    Access seen;
    if (view_access(in, access, shape, in.dtype, &seen)) return seen;
  }
  return {access.root, access.offset, broadcast_strides(shape, access.strides, space_of(code, r, instr))};
}

Reduction reduction_of(const Instr& in, const Dims& operand) {
  Reduction r;
  const size_t axes = in.attrs.size() - 1;
  const int first = axes ? static_cast<int>(in.attrs[1]) : operand.rank, last = first + static_cast<int>(axes);
  for (int i = 0; i < operand.rank; ++i) (i < first ? r.outer : i < last ? r.count : r.inner) *= operand[i];
  return r;
}

Needs needs_of(const ProgramCode& code, int begin, int end, const std::vector<uint8_t>& keep, const std::vector<uint8_t>& hooked) {
  const size_t inputs = code.inputs.size();
  Needs needs{std::vector<uint8_t>(inputs + end, 0), std::vector<uint8_t>(inputs + end, 0)};
  for (int i = end - 1; i >= begin; --i) {
    const size_t v = inputs + i;
    if (keep[v]) needs.memory[v] = 1;
    if (keep[v] || hooked[i]) needs.any[v] = 1;
    if (!needs.any[v]) continue;
    const char cls = op_info(code.instrs[i].op).cls;
    const bool memory = cls == 'M' || cls == 'D' || (needs.memory[v] && may_be_view(code.instrs[i].op));
    for (int32_t o : code.instrs[i].operands) {
      if (o < 0) continue;
      needs.any[o] = 1;
      needs.memory[o] |= memory;
    }
  }
  return needs;
}

Resolved resolve(const ProgramCode& code, int begin, int end, const std::vector<uint8_t>& keep, const Needs& needs, const std::vector<uint8_t>& hooked) {
  const int inputs = static_cast<int>(code.inputs.size());
  Resolved r;
  r.access.resize(inputs + end);
  r.work.resize(end, Work::kDead);
  for (int v = 0; v < inputs; ++v) r.access[v] = {v, 0, code.inputs[v].strides};
  for (int i = 0; i < end; ++i) {
    const int v = inputs + i;
    const Instr& in = code.instrs[i];
    Access& access = r.access[v];
    access = {v, 0, contiguous_strides(in.shape)};
    if (i >= begin && !needs.any[v]) continue;
    const bool own = keep[v] || hooked[i];
    if (may_be_view(in.op) && !own) {
      Access seen;
      if (view_access(in, r.access[in.operands[0]], shape_of(code, in.operands[0]), dtype_of(code, in.operands[0]), &seen)) {
        access = seen;
        r.work[i] = in.shape.size() == 0 ? Work::kEmpty : Work::kView;
        continue;
      }
    }
    if (in.op == Op::kFULL && !own) {
      for (int a = 0; a < in.shape.rank; ++a) access.strides[a] = 0;
      r.work[i] = in.shape.size() == 0 ? Work::kEmpty : Work::kImmediate;
      continue;
    }
    r.work[i] = work_of(code, in);
    if (r.work[i] == Work::kTile && !own && i >= begin && !needs.memory[v] && from_immediates(code, r, in)) {
      for (int a = 0; a < in.shape.rank; ++a) access.strides[a] = 0;
      r.work[i] = Work::kOnce;
    }
  }
  return r;
}

}  // namespace dvm
