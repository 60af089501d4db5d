#include "graph.h"

#include <algorithm>
#include <unordered_map>

#include "infer.h"
#include "optable.h"
#include "place.h"

namespace dvm {
namespace {

uint32_t name_number(const std::string& name) {
  static auto* numbers = new std::unordered_map<std::string, uint32_t>;
  return numbers->try_emplace(name, static_cast<uint32_t>(numbers->size())).first->second;
}

// Elements an instruction touches; a matmul's multiplications. In floating point: views may have more of them than memory has bytes.
double work_of(const Instr& instr, const std::vector<OperandType>& operands) {
  const auto result = static_cast<double>(instr.shape.size());
  if (operands.empty() || !operands[0].shape) return result;
  const Dims& a = *operands[0].shape;
  const auto taps = [&](int axis) { return static_cast<double>(std::max<int64_t>(1, operands[1].shape->size() / std::max<int64_t>(1, instr.shape[axis]))); };
  if (instr.op == Op::kMATMUL) return result * static_cast<double>(a[a.rank - (instr.attrs[0] ? 2 : 1)]);
  if (instr.op == Op::kCONV2D) return result * taps(1);
  if (instr.op == Op::kCONV2D_WEIGHT) return result * taps(0);
  return std::max(result, static_cast<double>(a.size()));
}

}  // namespace

Graph::Graph(std::string name_) : name(std::move(name_)), step(current_step()), times(times_of(name)), name_id_(name_number(name)) { reset(); }

Graph::~Graph() { forget(); }

void Graph::forget() {
  for (size_t i = 0; i < nodes_.size(); ++i) release(nodes_[i]);
}

void Graph::reset() {
  pending_.clear();
  inputs_.clear();
  key_.assign(1, name_id_);
  geometry_.clear();
  ++flush_number_;
  backward_ = false;
  work_ = 0;
}

void Graph::begin_again() {
  NodeList old;
  nodes_.swap(old);  // which runs Python as it goes: the graph is empty by then
  failures_.clear();
  reset();
  for (size_t i = 0; i < old.size(); ++i) release(old[i]);
}

Node& Graph::node(int64_t id) {
  if (id < 0 || id >= size()) throw UserError("no value " + id_text(id) + " in graph " + name + ", which has " + std::to_string(size()));
  return nodes_[static_cast<size_t>(id)];
}

const UserError* Graph::failure_of(int64_t id) const {
  for (const Failure& f : failures_)
    if (id >= f.first && id < f.end) return &f.error;
  return nullptr;
}

void Graph::set_name(int64_t id, std::string name_of_value) {
  Node& n = node(id);
  if (n.lease) log_name(n.lease->log_id, name_of_value);
  n.instr.name = std::move(name_of_value);
}

int64_t Graph::input(void* data, DType dtype, const Dims& shape, const Dims* strides, std::shared_ptr<void> keep, std::string cls) {
  const int item = item_size(dtype);
  if (!item) throw UserError("input: no dtype " + std::to_string(static_cast<int>(dtype)));
  int64_t reach = item;
  for (int i = 0; i < shape.rank; ++i) {
    if (shape[i] < 0) throw UserError("input: shape " + shape_text(shape) + " has a negative extent");
    // Below kMaxBytes offsets are added and multiplied without overflow.
    const int64_t step = strides ? (*strides)[i] : 1, most = kMaxBytes / std::max<int64_t>(1, shape[i]);
    if (shape[i] > 1 && (reach > most || step > most || step < -most)) throw UserError("input: " + type_text(dtype, shape) + " is too large");
    if (shape[i] > 1) reach *= shape[i];
  }
  if (!data && shape.size() > 0) throw UserError("input: " + type_text(dtype, shape) + " at address 0");
  if (reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(item) && shape.size() > 0)
    throw UserError("input: " + type_text(dtype, shape) + " is not aligned to its items of " + std::to_string(item) + " bytes; copy it first");
  Node& n = nodes_.push();
  n.instr.dtype = dtype;
  n.instr.shape = shape;
  n.memory.data = data;
  n.memory.dtype = dtype;
  n.memory.shape = shape;
  n.memory.strides = strides ? *strides : contiguous_strides(shape);
  n.cls = std::move(cls);
  n.lease = std::make_shared<Lease>();
  n.lease->keep = std::move(keep);
  if (memory_log_on()) {
    BufferTag tag;
    tag.cls = n.cls.empty() ? "activation" : n.cls;
    n.lease->log_id = log_external(data, shape.size() * item, tag);
  }
  return size() - 1;
}

// The operand's number in the structure key: inputs even, instructions odd.
int32_t Graph::add_operand(int32_t id) {
  Node& n = nodes_[static_cast<size_t>(id)];
  if (n.pending >= 0) return n.pending << 1 | 1;
  if (n.slot_flush != flush_number_) {
    if (!n.memory.data) n.memory = {nullptr, n.instr.dtype, n.instr.shape, contiguous_strides(n.instr.shape), nullptr};  // empty, needs no memory
    n.slot = static_cast<int32_t>(inputs_.size());
    n.slot_flush = flush_number_;
    inputs_.push_back(id);
    fresh_.push_back(static_cast<uint32_t>(n.instr.dtype) | static_cast<uint32_t>(n.instr.shape.rank) << 8);
    geometry_.insert(geometry_.end(), n.memory.shape.d.begin(), n.memory.shape.d.begin() + n.memory.shape.rank);
    geometry_.insert(geometry_.end(), n.memory.strides.d.begin(), n.memory.strides.d.begin() + n.memory.strides.rank);
  }
  return n.slot << 1;
}

Instr& Graph::draft() {
  clear(draft_);
  return draft_;
}

int64_t Graph::record(bool shape_given) {
  const OpInfo& info = op_info(draft_.op);
  if (info.name && info.own_shape != shape_given)
    throw UserError(std::string(info.name) + (shape_given ? ": the result's shape follows from the operands, none may be given" : ": needs the result's shape"),
                    draft_.place);
  types_.clear();
  for (const int32_t operand : draft_.operands) {
    if (operand == -1) {
      types_.push_back({DType::kNone, nullptr});
      continue;
    }
    if (operand < 0 || operand >= size())
      throw UserError(std::string(op_name(draft_.op)) + ": no value " + id_text(operand) + " in graph " + name, draft_.place);
    const Node& o = nodes_[static_cast<size_t>(operand)];
    if (gone(o))
      throw UserError(std::string(op_name(draft_.op)) + ": value " + gone_text(operand, o) + "; keep it in the flush that computes it", draft_.place);
    types_.push_back({o.instr.dtype, &o.instr.shape});
  }
  infer(draft_, types_);
  return add(shape_given);
}

// The draft, inferred, with the types of its operands.
int64_t Graph::add(bool shape_given) {
  const auto id = static_cast<int32_t>(nodes_.size());
  Node& n = nodes_.push();
  take(n.instr, draft_);
  const Instr& instr = n.instr;
  const bool where = geometric(instr.op);
  key_.push_back(static_cast<uint32_t>(instr.op) | static_cast<uint32_t>(instr.dtype) << 8 | static_cast<uint32_t>(instr.shape.rank) << 16 |
                 static_cast<uint32_t>(instr.imms.size()) << 24);
  key_.push_back(instr.place);
  key_.push_back(static_cast<uint32_t>(instr.operands.size()) | static_cast<uint32_t>(where ? 0 : instr.attrs.size()) << 16);
  fresh_.clear();
  for (const int32_t operand : instr.operands) key_.push_back(static_cast<uint32_t>(operand < 0 ? -1 : add_operand(operand)));
  key_.insert(key_.end(), fresh_.begin(), fresh_.end());
  if (where) {
    geometry_.insert(geometry_.end(), instr.attrs.begin(), instr.attrs.end());
  } else {
    for (const int64_t a : instr.attrs) {
      key_.push_back(static_cast<uint32_t>(a));
      key_.push_back(static_cast<uint32_t>(a >> 32));
    }
  }
  if (shape_given) geometry_.insert(geometry_.end(), instr.shape.d.begin(), instr.shape.d.begin() + instr.shape.rank);
  backward_ = backward_ || place_is_backward(instr.place);
  work_ += work_of(instr, types_);
  n.pending = static_cast<int32_t>(pending_.size());
  pending_.push_back(id);
  return id;
}

void Graph::take_back(int64_t first) {
  const auto unread = [this](const Node& n) { return n.instr.op == Op::kEnd && n.slot_flush != flush_number_; };
  while (size() > first && unread(nodes_[nodes_.size() - 1])) {
    release(nodes_[nodes_.size() - 1]);
    nodes_.pop();
  }
}

std::vector<int64_t> Graph::move_to(Graph& other, const std::vector<uint8_t>& needed) {
  std::vector<int64_t> moved(nodes_.size(), -1);
  for (size_t v = 0; v < nodes_.size(); ++v) {
    if (!needed[v]) continue;
    Node& n = nodes_[v];
    if (n.instr.op == Op::kEnd) {
      Node& to = other.nodes_.push();
      take(to.instr, n.instr);
      std::swap(to.memory, n.memory);
      std::swap(to.lease, n.lease);
      std::swap(to.cls, n.cls);
      moved[v] = other.size() - 1;
      continue;
    }
    take(other.draft(), n.instr);
    other.types_.clear();
    for (int32_t& operand : other.draft_.operands) {
      if (operand >= 0) operand = static_cast<int32_t>(moved[static_cast<size_t>(operand)]);
      if (operand < 0) other.types_.push_back({DType::kNone, nullptr});
      else other.types_.push_back({other.nodes_[static_cast<size_t>(operand)].instr.dtype, &other.nodes_[static_cast<size_t>(operand)].instr.shape});
    }
    moved[v] = other.add(op_info(other.draft_.op).own_shape);
  }
  return moved;
}

}  // namespace dvm
