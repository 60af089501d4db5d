// Capture: ops recorded in order until they are flushed. Everything here is used with the GIL held.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nodes.h"
#include "spent.h"

namespace dvm {

// Below this many elements the work is shorter than what handing the GIL back and forth can cost.
inline constexpr int64_t kSmallWork = 32768;

// No two are the same. With the GIL.
inline uint64_t next_number() {
  static uint64_t last = 0;
  return ++last;
}

class Graph {
 public:
  explicit Graph(std::string name);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  std::string name;
  int64_t step = 0;
  const FunctionTimesPtr times;

  // strides: null: contiguous. keep: held as long as the memory may be read. Throws UserError.
  int64_t input(void* data, DType dtype, const Dims& shape, const Dims* strides, std::shared_ptr<void> keep, std::string cls);

  // An empty instruction to fill in and record: operands are ids of the graph, -1 where imms[0] stands.
  Instr& draft();
  // Records the draft; returns the id of its result. Throws UserError, nothing recorded.
  int64_t record(bool shape_given);

  // Forgets the values from `first` on if no instruction has come to be among them: inputs of one that was refused.
  void take_back(int64_t first);
  // The pending values marked in `needed`, and the inputs among them, go to an empty graph. Returns their ids there, -1 for the others. What
  // is left behind is of no use.
  std::vector<int64_t> move_to(Graph& other, const std::vector<uint8_t>& needed);
  // As if newly made: what is pending will not be run.
  void begin_again();
  // Lets go of all memory: what is pending will not be run.
  void forget();

  int64_t size() const { return static_cast<int64_t>(nodes_.size()); }
  // Operands of pending instructions that are in memory, in the order of their program's inputs.
  const std::vector<int32_t>& inputs() const { return inputs_; }
  int64_t pending() const { return static_cast<int64_t>(pending_.size()); }
  // Throws UserError for an id that is none.
  Node& node(int64_t id);
  void set_name(int64_t id, std::string name);

  // The launch of the pending instructions, ready to run, null if there are none; finish() afterwards. `made`: the program is new.
  struct Flush {
    std::shared_ptr<Launch> launch;
    std::vector<std::pair<int32_t, int32_t>> kept;           // node, local id: in memory after the run
    struct Copy {
      int32_t node;
      void* to;
    };
    std::vector<Copy> copies;                                // done by finish()
    bool small = false;                                      // a few microseconds of work
  };
  // Called before each launch with its program. is_new: it has been made for it. Gives the hooks that this launch passes over.
  using ProgramHandler = std::function<PassedOver(const ProgramPtr&, bool is_new)>;
  Flush flush(const std::vector<int64_t>& keep, const std::vector<std::pair<int64_t, void*>>& outputs, const ProgramHandler& made, StopHandler stop);
  void finish(Flush& flush);
  // The pending instructions compiled for the cpu with these values kept; nothing runs, nothing is remembered. Null if there are none.
  std::shared_ptr<Segment> compiled(const std::vector<int64_t>& keep);
  void release(const std::vector<int64_t>& ids);

  // While a thread runs what was pending: others that read or record here wait for it (wait_for_flush).
  std::atomic<bool> in_flight{false};
  uint64_t flight_forks = 0;  // forks() when it began

  // Why the values from `first` on, all pending until now, never came to be.
  void failed(int64_t first, const UserError& error) { failures_.push_back({first, size(), error}); }
  const UserError* failure_of(int64_t id) const;
  int64_t first_pending() const { return pending_.empty() ? size() : pending_.front(); }

 private:
  friend class Replay;
  bool small() const { return work_ < kSmallWork; }
  int64_t add(bool shape_given);
  int32_t add_operand(int32_t id);
  std::shared_ptr<ProgramCode> make_code() const;
  int64_t patch(ProgramCode& code) const;
  int32_t local(int32_t id) const;

  void reset();
  void release(Node& node);

  NodeList nodes_;
  std::vector<int32_t> pending_, inputs_;  // nodes
  std::vector<uint32_t> key_;              // structure of what is pending
  std::vector<int64_t> geometry_;          // and its shapes, strides, bounds
  uint32_t flush_number_ = 1;
  uint32_t name_id_ = 0;
  bool backward_ = false;
  double work_ = 0;                        // elements to be computed
  struct Failure {
    int64_t first, end;
    UserError error;
  };
  std::vector<Failure> failures_;
  Instr draft_;
  std::vector<OperandType> types_;         // scratch of add(),
  std::vector<uint32_t> fresh_;            //   and what it adds to the key for new inputs
};

}  // namespace dvm
