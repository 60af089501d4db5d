#include "nodes.h"

#include <utility>

namespace dvm {

bool gone(const Node& n) { return n.pending < 0 && !n.memory.data && n.instr.shape.size() > 0; }

std::string id_text(int64_t id) { return "%" + std::to_string(id); }

std::string gone_text(int64_t id, const Node& n) {
  return id_text(id) + (n.instr.name.empty() ? "" : " (" + n.instr.name + ")") + " is no longer in memory: it was fused away or released";
}

void clear(Instr& instr) {
  instr.op = Op::kEnd;
  instr.dtype = DType::kNone;
  instr.place = 0;
  instr.operands.clear();
  instr.attrs.clear();
  instr.imms.clear();
  instr.shape.rank = 0;
  instr.name.clear();
}

void take(Instr& instr, Instr& from) {
  instr.op = from.op;
  instr.dtype = from.dtype;
  instr.place = from.place;
  instr.operands.swap(from.operands);
  instr.attrs.swap(from.attrs);
  instr.imms.swap(from.imms);
  instr.shape = from.shape;
  if (!from.name.empty()) instr.name.swap(from.name);
}

// Blocks of dead graphs; some megabytes at most.
static constexpr size_t kSpareBlocks = 256;
static std::vector<std::unique_ptr<Node[]>>& spare_blocks() {
  static auto* blocks = new std::vector<std::unique_ptr<Node[]>>;
  return *blocks;
}

NodeList::~NodeList() {
  for (auto& block : blocks_)
    if (spare_blocks().size() < kSpareBlocks) spare_blocks().push_back(std::move(block));
}

Node& NodeList::push() {
  if (size_ == blocks_.size() * kBlock) {
    auto& spare = spare_blocks();
    if (spare.empty()) {
      blocks_.push_back(std::make_unique<Node[]>(kBlock));
    } else {
      blocks_.push_back(std::move(spare.back()));
      spare.pop_back();
    }
  }
  Node& n = (*this)[size_++];
  clear(n.instr);
  n.memory.data = nullptr;
  n.memory.owner.reset();
  n.memory.panels = nullptr;
  n.lease.reset();
  n.cls.clear();
  n.pending = n.slot = -1;
  n.slot_flush = 0;
  return n;
}

}  // namespace dvm
