// The values of a graph.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "launch.h"

namespace dvm {

// A value: an input, or the result of an instruction.
struct Node {
  Instr instr;              // op kEnd: an input. operands: ids of the graph
  Value memory;             // data null: not in memory
  LeasePtr lease;           // of memory the graph does not own
  std::string cls;          // of an input
  int32_t pending = -1;     // number among the pending instructions
  int32_t slot = -1;        // number among the pending program's inputs,
  uint32_t slot_flush = 0;  //   if this is the flush it was given for
};

// The nodes of a graph, in blocks that go from graph to graph: a node keeps its vectors' memory.
class NodeList {
 public:
  ~NodeList();
  size_t size() const { return size_; }
  Node& operator[](size_t i) { return blocks_[i / kBlock][i % kBlock]; }
  const Node& operator[](size_t i) const { return blocks_[i / kBlock][i % kBlock]; }
  // A node as if newly made.
  Node& push();
  void swap(NodeList& other) {
    blocks_.swap(other.blocks_);
    std::swap(size_, other.size_);
  }
  void pop() { --size_; }  // of what the last node holds

 private:
  static constexpr size_t kBlock = 64;
  std::vector<std::unique_ptr<Node[]>> blocks_;
  size_t size_ = 0;
};

// Neither in memory nor to be computed (an empty array needs no memory).
bool gone(const Node& n);
std::string id_text(int64_t id);                       // "%7"
std::string gone_text(int64_t id, const Node& n);      // what to say about a value that is gone
// Attributes that say where, not what (bounds, depths): they are patched like shapes.
constexpr bool geometric(Op op) { return op == Op::kSLICE || op == Op::kUNSLICE || op == Op::kONE_HOT || op == Op::kPAD; }
// As if newly made, but with the memory of its vectors.
void clear(Instr& instr);
// `from` as it is, into one as if newly made; their vectors' memory changes places.
void take(Instr& instr, Instr& from);

}  // namespace dvm
