#include "random_graph.h"

#include <algorithm>
#include <cstring>

#include "optable.h"
#include "stream.h"

namespace dvm::test {
namespace {

constexpr int64_t kMostElements = 20000;

Dims random_shape(Random& r, int rank) {
  static const std::vector<int64_t> extents{1, 1, 2, 3, 4, 5, 7, 8, 16, 17, 33, 64};
  Dims d;
  d.rank = rank;
  for (int i = 0; i < rank; ++i) d[i] = r.chance(0.03) ? 0 : r.pick(extents);
  for (int i = 0; d.size() > kMostElements; ++i) d[i % rank] = 1;
  return d;
}

// Small numbers: what overflows is drawn by the operations soon enough.
void fill(Random& r, DType t, uint8_t* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const double f = static_cast<double>(r.below(4001) - 2000) / 1000;
    const int64_t k = t == DType::kU8 ? r.below(7) : r.below(13) - 6;
    switch (t) {
      case DType::kF32: reinterpret_cast<float*>(to)[i] = static_cast<float>(f); break;
      case DType::kF64: reinterpret_cast<double*>(to)[i] = f; break;
      case DType::kF16: reinterpret_cast<uint16_t*>(to)[i] = static_cast<uint16_t>(0x3000 | r.below(0x1000) | r.below(2) << 15); break;
      case DType::kBF16: reinterpret_cast<uint16_t*>(to)[i] = static_cast<uint16_t>(0x3e00 | r.below(0x200) | r.below(2) << 15); break;
      case DType::kBool: to[i] = static_cast<uint8_t>(r.below(2)); break;
      case DType::kI8:
      case DType::kU8: to[i] = static_cast<uint8_t>(k); break;
      case DType::kI32: reinterpret_cast<int32_t*>(to)[i] = static_cast<int32_t>(k); break;
      case DType::kI64: reinterpret_cast<int64_t*>(to)[i] = k; break;
      default: break;
    }
  }
}

Input random_input(Random& r, DType t, const Dims& shape) {
  Input in;
  in.dtype = t;
  in.shape = shape;
  const int64_t item = item_size(t);
  // Plain, every second element, reversed along an axis, or repeated along one.
  const int64_t way = r.below(6), step = way == 1 ? 2 : 1;
  int64_t elements = 1;
  for (int a = shape.rank - 1; a >= 0; --a) {
    const bool repeated = way == 3 && a == 0;
    if (a == shape.rank - 1) elements = step;
    in.strides.rank = shape.rank;
    in.strides[a] = repeated ? 0 : elements;
    if (!repeated) elements *= std::max<int64_t>(1, shape[a]);
  }
  in.strides.rank = shape.rank;
  if (way == 2 && shape.rank > 0 && shape.size() > 0) {
    in.offset = in.strides[0] * (shape[0] - 1) * item;
    in.strides[0] = -in.strides[0];
  }
  in.memory = std::make_shared<std::vector<uint64_t>>(static_cast<size_t>(elements * item + 15) / 8);
  fill(r, t, reinterpret_cast<uint8_t*>(in.memory->data()), elements);
  return in;
}

// Positions along any axis of `base`, for all its elements or the rows of its first axis.
Input random_index(Random& r, const Dims& base) {
  Input in;
  in.dtype = r.chance(0.5) ? DType::kI32 : DType::kI64;
  in.shape = r.chance(0.5) ? base : Dims{1, {base[0]}};
  in.strides = contiguous_strides(in.shape);
  const int64_t n = in.shape.size(), extent = std::max<int64_t>(1, *std::min_element(base.d.begin(), base.d.begin() + base.rank));
  in.memory = std::make_shared<std::vector<uint64_t>>(static_cast<size_t>(n + 1));
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = r.below(2 * extent) - extent;
    if (in.dtype == DType::kI32) reinterpret_cast<int32_t*>(in.memory->data())[i] = static_cast<int32_t>(at);
    else reinterpret_cast<int64_t*>(in.memory->data())[i] = at;
  }
  return in;
}

int64_t hostile_number(Random& r) {
  static const std::vector<int64_t> numbers{-1,
                                            0,
                                            1,
                                            2,
                                            3,
                                            9,
                                            10,
                                            11,
                                            63,
                                            64,
                                            255,
                                            1 << 20,
                                            INT32_MAX,
                                            int64_t{1} << 31,
                                            int64_t{1} << 45,
                                            int64_t{1} << 46,
                                            int64_t{1} << 62,
                                            INT64_MAX,
                                            INT64_MIN,
                                            INT64_MIN + 1,
                                            -(int64_t{1} << 40)};
  return r.pick(numbers);
}

// Attributes that an opcode takes, a letter each: a axis · f flag · k 0 to 3 · z 0 or 1 · p 1 or 2 · 1 one.
struct Form {
  Op op;
  const char* attrs;
};
constexpr Form kForms[] = {
    {Op::kMATMUL, "ff"},
    {Op::kCONV2D, "ppzzpp111"},
    {Op::kCONV2D_WEIGHT, "ppzzpp111"},
    {Op::kMAX_POOL2D, "ppppzzpp"},
    {Op::kMAX_POOL2D_GRAD, "ppppzzpp"},
    {Op::kAVG_POOL2D, "ppppzzzzfk"},
    {Op::kAVG_POOL2D_GRAD, "ppppzzzzfk"},
    {Op::kCONCAT, "a"},
    {Op::kGATHER, "a"},
    {Op::kSCATTER_ADD, "a"},
    {Op::kONE_HOT, "k"},
    {Op::kIOTA, "a"},
    {Op::kCUMSUM, "aff"},
    {Op::kGATHER_ELEMENTS, "a"},
    {Op::kSCATTER, "a"},
    {Op::kSCATTER_ELEMENTS, "a"},
    {Op::kSCATTER_ADD_ELEMENTS, "a"},
    {Op::kARGMAX, "fa"},
    {Op::kARGMIN, "fa"},
    {Op::kSORT, "af"},
    {Op::kARGSORT, "af"},
    {Op::kTOPK, "akf"},
};

void draw_attrs(Random& r, Instr& instr, int rank, bool hostile) {
  const OpInfo& info = op_info(instr.op);
  const auto number = [&](int64_t below) { return hostile && r.chance(0.3) ? hostile_number(r) : below > 0 ? r.below(below) : 0; };
  for (const Form& form : kForms) {
    if (form.op != instr.op) continue;
    for (const char* c = form.attrs; *c; ++c)
      instr.attrs.push_back(*c == 'a'                ? number(rank)
                            : *c == 'k'              ? number(4)
                            : *c == '1' || *c == 'p' ? (hostile && r.chance(0.2) ? hostile_number(r)
                                                        : *c == '1'              ? 1
                                                                                 : 1 + r.below(2))
                                                     : number(2));
    return;
  }
  if (info.cls == 'R') {
    const int64_t first = number(rank), n = 1 + r.below(hostile ? 12 : std::max<int64_t>(1, rank - first));
    instr.attrs.push_back(number(2));
    for (int64_t a = 0; a < n && (hostile || first + a < rank); ++a)
      instr.attrs.push_back(static_cast<int64_t>(static_cast<uint64_t>(first) + static_cast<uint64_t>(a)));
  } else if (instr.op == Op::kTRANSPOSE) {
    for (int a = 0; a < rank; ++a) instr.attrs.push_back(a);
    for (int a = rank - 1; a > 0; --a) std::swap(instr.attrs[static_cast<size_t>(a)], instr.attrs[static_cast<size_t>(r.below(a + 1))]);
    if (hostile && rank && r.chance(0.5)) instr.attrs[0] = hostile_number(r);
  } else if (instr.op == Op::kSLICE || instr.op == Op::kUNSLICE || instr.op == Op::kPAD) {
    for (int a = 0; a < rank; ++a) {
      instr.attrs.push_back(number(3));
      if (instr.op != Op::kPAD) instr.attrs.push_back(hostile && r.chance(0.4) ? hostile_number(r) : r.chance(0.2) ? -1 : 1 + r.below(2));
    }
  }
}

// A result shape that may fit.
Dims draw_shape(Random& r, const Instr& instr, const std::vector<const Dims*>& shapes) {
  if (shapes.empty() || r.chance(0.2)) return random_shape(r, static_cast<int>(r.below(4)));
  const Dims& a = *shapes[0];
  const auto of = [&](size_t k, int axis) { return shapes[std::min(k, shapes.size() - 1)]->d[static_cast<size_t>(axis)]; };
  Dims shape = a;
  const auto each = [&](auto&& change) {
    for (int i = 0; i < shape.rank; ++i) shape[i] = change(a[i] & 0xffff);
  };
  switch (instr.op) {
    case Op::kRESHAPE:
      shape = {2, {a.rank ? a[0] : 1, 1}};
      for (int i = 1; i < a.rank; ++i) shape[1] *= a[i] & 0xffff;
      break;
    case Op::kBROADCAST: each([&](int64_t n) { return n == 1 ? 1 + r.below(5) : n; }); break;
    case Op::kUNSLICE: each([&](int64_t n) { return 3 + 2 * n; }); break;
    case Op::kPAD: each([&](int64_t n) { return 2 + n; }); break;
    case Op::kSLICE: each([&](int64_t n) { return std::max<int64_t>(0, (n - 2) / 2); }); break;
    case Op::kCONV2D: shape = {4, {a[0], of(1, 0), 1 + r.below(6), 1 + r.below(6)}}; break;
    case Op::kCONV2D_WEIGHT: shape = {4, {of(1, 1), a[1], 1 + r.below(3), 1 + r.below(3)}}; break;
    case Op::kMAX_POOL2D:
    case Op::kAVG_POOL2D:
    case Op::kAVG_POOL2D_GRAD: shape = {4, {a[0], a[1], 1 + r.below(8), 1 + r.below(8)}}; break;
    default: break;
  }
  return shape;
}

}  // namespace

void draw(Random& r, Instr& instr, const std::vector<const Dims*>& shapes, bool hostile) {
  const OpInfo& info = op_info(instr.op);
  instr.dtype = static_cast<DType>(r.below(hostile ? kDTypes : kDTypes - 1) + (hostile ? 0 : 1));
  instr.attrs.clear();
  draw_attrs(r, instr, shapes.empty() ? 2 : shapes[0]->rank, hostile);
  if (hostile && r.chance(0.1)) instr.attrs.resize(static_cast<size_t>(r.below(14)), hostile_number(r));
  instr.imms.clear();
  const bool immediate = std::find(instr.operands.begin(), instr.operands.end(), -1) != instr.operands.end();
  const int64_t wanted = immediate || instr.op == Op::kFULL || instr.op == Op::kPAD ? 1 : instr.op == Op::kONE_HOT || instr.op == Op::kRANDOM ? 2 : 0;
  const int64_t imms = r.chance(hostile ? 0.9 : 0.97) ? wanted : r.below(3);
  for (int64_t k = 0; k < imms; ++k) {
    Imm imm;
    imm.is_int = r.chance(0.5);
    imm.i = hostile && r.chance(0.3) ? hostile_number(r) : r.below(9) - 4;
    imm.f = imm.is_int ? static_cast<double>(imm.i) : static_cast<double>(imm.i) / 2 + 0.25;
    instr.imms.push_back(imm);
  }
  if (info.own_shape) {
    instr.shape = draw_shape(r, instr, shapes);
    if (hostile && r.chance(0.3) && instr.shape.rank) instr.shape[static_cast<int>(r.below(instr.shape.rank))] = hostile_number(r);
  }
}

RandomGraph random_graph(uint64_t seed, int instrs) {
  Random r(seed);
  RandomGraph made;
  std::vector<Op> ops;
  for (int code = 1; code < kOps; ++code)
    if (op_info(static_cast<Op>(code)).name) ops.push_back(static_cast<Op>(code));
  static const std::vector<DType> dtypes{DType::kF32,  DType::kF32, DType::kF32, DType::kF64, DType::kI32, DType::kI64,
                                         DType::kBool, DType::kI8,  DType::kU8,  DType::kF16, DType::kBF16};
  Dims base = random_shape(r, static_cast<int>(1 + r.below(3)));
  if (r.chance(0.1)) {  // enough for several workers, rows longer than a tile, many rows
    static const std::vector<Dims> large{{1, {40000}}, {2, {1300, 30}}, {2, {9, 1100}}, {3, {2, 150, 64}}, {2, {128, 128}}};
    base = r.pick(large);
  }
  const DType main = r.pick(dtypes);
  if (r.chance(0.25)) base = {4, {1 + r.below(3), 1 + r.below(4), 3 + r.below(6), 3 + r.below(6)}};  // planes
  for (int i = 0; i < 3; ++i) {
    Dims shape = base;
    for (int a = 0; a < shape.rank; ++a)
      if (i && r.chance(0.25)) shape[a] = 1;
    if (i == 1 && base.rank == 4) shape = {4, {1 + r.below(4), base[1], 1 + r.below(3), 1 + r.below(3)}};  // weights
    made.inputs.push_back(random_input(r, main, shape));
  }
  made.inputs.push_back(random_input(r, r.pick(dtypes), random_shape(r, static_cast<int>(r.below(4)))));
  made.inputs.push_back(random_index(r, base));
  Graph g("draft");
  add_inputs(g, made);
  for (int tries = 0; made.count() < instrs && tries < 60 * instrs; ++tries) {
    Instr& draft = g.draft();
    draft.op = r.pick(ops);
    const OpInfo& info = op_info(draft.op);
    const int64_t arity = info.arity < 0 ? 1 + r.below(3) : info.arity;
    std::vector<const Dims*> shapes;
    for (int64_t k = 0; k < arity; ++k) {
      // Often one of the last results, so that chains grow.
      const int64_t most = made.values(), id = r.chance(0.5) ? std::max<int64_t>(0, most - 1 - r.below(3)) : r.below(most);
      draft.operands.push_back(static_cast<int32_t>(id));
      shapes.push_back(&g.node(id).instr.shape);
    }
    if (info.cls == 'B' && r.chance(0.2)) draft.operands[static_cast<size_t>(r.below(2))] = -1;
    draw(r, draft, shapes, false);
    const Instr instr = draft;
    int64_t id = -1;
    try {
      id = g.record(info.own_shape);
    } catch (const UserError&) { continue; }
    made.instrs.push_back(instr);
    made.own.push_back(info.own_shape);
    if (g.node(id).instr.shape.size() > 4 * kMostElements) {  // it stays in this graph, and no one may use it
      made.instrs.pop_back();
      made.own.pop_back();
      break;
    }
  }
  return made;
}

std::string text_of(const RandomGraph& program) {
  std::string text;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const Input& in = program.inputs[i];
    text += "\n%" + std::to_string(i) + " = input " + type_text(in.dtype, in.shape) + " strides " + shape_text(in.strides);
  }
  for (int i = 0; i < program.count(); ++i) {
    const Instr& in = program.instrs[static_cast<size_t>(i)];
    text += "\n%" + std::to_string(program.inputs.size() + static_cast<size_t>(i)) + " = " + op_name(in.op);
    for (const int32_t o : in.operands) text += " %" + std::to_string(o);
    for (const int64_t a : in.attrs) text += " attr " + std::to_string(a);
    for (const Imm& imm : in.imms) text += " imm " + std::to_string(imm.f);
    text += " : " + type_text(in.dtype, in.shape);
  }
  return text;
}

void add_inputs(Graph& g, const RandomGraph& program) {
  for (const Input& in : program.inputs) g.input(reinterpret_cast<uint8_t*>(in.memory->data()) + in.offset, in.dtype, in.shape, &in.strides, in.memory, "");
}

void record(Graph& g, const RandomGraph& program, int from, int until) {
  for (int i = from; i < until; ++i) {
    g.draft() = program.instrs[static_cast<size_t>(i)];
    g.record(program.own[static_cast<size_t>(i)]);
  }
}

std::vector<uint8_t> bytes_of(Graph& g, int64_t id) {
  const Value& v = g.node(id).memory;
  std::vector<uint8_t> bytes;
  if (!v.data) return bytes;
  bytes.resize(static_cast<size_t>(v.shape.size() * item_size(v.dtype)));
  if (!bytes.empty()) copy_contiguous(bytes.data(), v);
  return bytes;
}

}  // namespace dvm::test
