// A flush run again on other memory of the same shapes, without recording anything: what graph mode of arrays is made of.
#pragma once
#include <atomic>

#include "graph.h"

namespace dvm {

class Replay {
 public:
  // Of a graph's pending instructions, which its next flush runs and makes a program of. `arguments`: for inputs that are given at every
  // call, the value and its number among the addresses; other inputs stay where they are. results: values.
  Replay(const Graph& graph, const std::vector<std::pair<int64_t, int>>& arguments, const std::vector<int64_t>& results);

  // With the GIL, before each run. False if it takes a launch (hooks, checks, the memory log, another device than the cpu) or another thread is at it.
  bool begin();
  // Writes the results, each on memory of its own, or on that of an argument that is given away (null: it is not) if no instruction reads
  // it too late. Throws UserError of an instruction. Needs no GIL.
  void run(void* const* addresses, std::shared_ptr<Storage>* given, Value* results);
  size_t results() const { return results_.size(); }
  const bool small;

 private:
  void compile();
  std::shared_ptr<Storage> memory_for(size_t place, void* const* addresses, std::shared_ptr<Storage>* given) const;
  void note_launch();
  const uint64_t number_;
  const std::vector<uint32_t> key_;
  const std::vector<int64_t> geometry_;
  const std::shared_ptr<ProgramCode> code_;
  std::vector<std::pair<int32_t, int>> arguments_;  // input, number of the address
  std::vector<int32_t> results_;                    // local ids
  std::vector<Value> values_;                       // by local id: inputs, and during a run the results
  std::vector<LeasePtr> leases_;                    // of the inputs that stay
  std::vector<uint8_t> keep_;
  ProgramPtr program_;
  SegmentPtr segment_;
  std::atomic<bool> busy_{false};  // what a run writes is its own until it lets go
};

}  // namespace dvm
