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
  // Where an argument is; the panels of a constant.
  struct Argument {
    void* data;
    Panels* panels;
  };
  // Makes the results, each on memory of its own, or on that of an argument that is given away (null: it is not) if no instruction reads
  // it too late. Throws UserError of an instruction. Needs no GIL.
  void run(const Argument* arguments, std::shared_ptr<Storage>* given, std::shared_ptr<Storage>* results) { run({arguments, given, results, nullptr}, 1); }
  // the same with the results where the caller says.
  void run_into(const Argument* arguments, void* const* into) { run({arguments, nullptr, nullptr, into}, 1); }
  // A run before found that it takes a few microseconds, and they all may be like this:
  bool is_short() const { return short_; }
  // the same with the GIL held throughout, no argument given away, and its time and counters told now and then.
  void run_short(const Argument* arguments, std::shared_ptr<Storage>* results) { run_short(Places{arguments, nullptr, results, nullptr}); }
  void run_short_into(const Argument* arguments, void* const* into) { run_short(Places{arguments, nullptr, nullptr, into}); }
  // Tells the counters of all.
  static void tell();
  ~Replay();
  size_t results() const { return results_.size(); }
  // Whether all inputs are given at every call; and which: input, number of the address.
  bool all_given() const { return leases_.empty(); }
  const std::vector<std::pair<int32_t, int>>& given() const { return arguments_; }
  // Dtype, shape and strides of a result; what else is there is a run's.
  const Value& result(size_t number) const { return values_[static_cast<size_t>(results_[number])]; }
  const bool small;

 private:
  struct End;
  // Results are made in `results`, or lie in `into`.
  struct Places {
    const Argument* arguments;
    std::shared_ptr<Storage>* given;
    std::shared_ptr<Storage>* results;
    void* const* into;
  };
  void compile();
  void place(const Places& at);
  std::shared_ptr<Storage> memory_for(size_t place, const Argument* arguments, std::shared_ptr<Storage>* given) const;
  void run(const Places& at, int stands_for);
  void run_short(const Places& at);
  void run_segment(bool measured, int stands_for);
  void note_launch();
  void count(int64_t launches);
  void tell_own();
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
  bool short_ = false;
  Sampling sampling_;              // of short runs
  int64_t untold_ = 0;             // short runs that no counter knows yet
  std::atomic<bool> busy_{false};  // what a run writes is its own until it lets go
};

}  // namespace dvm
