// One run of a program: its segments in order, its stops, its hooks' results.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device.h"
#include "memory.h"
#include "program_cache.h"

namespace dvm {

// Memory the core does not own. Over: nobody reads the pointer any more. `keep` holds what the memory belongs to.
struct Lease {
  std::atomic<bool> over{false};
  std::shared_ptr<void> keep;
  int64_t log_id = -1;
  ~Lease() { log_freed(log_id); }
};
using LeasePtr = std::shared_ptr<Lease>;

class Launch;
// What the memory log says of an instruction's result.
BufferTag tag_of(const Instr& instr, const char* cls, const Program& program, int instruction);
struct Measured {
  int instruction;
  Stats stats;
};
// Called on the launching thread before instruction `instruction` ("hook") or after the launch ("nan", "inf", "measured"). Null: no stops.
using StopHandler = std::function<void(Launch&, int instruction, const char* reason, const std::vector<int64_t>& hooks)>;

class Launch : public std::enable_shared_from_this<Launch> {
 public:
  // What a flush hands over, all by local id. values: inputs, and the caller's memory for outputs. keep: 1 if wanted in memory.
  struct Plan {
    ProgramPtr program;
    std::shared_ptr<ProgramCode> code;
    std::vector<int64_t> geometry;
    std::vector<Value> values;
    std::vector<LeasePtr> leases;
    std::vector<uint8_t> keep;
    // Results wanted where an input lies, byte for byte. Written there if the code allows, else elsewhere: flush copies.
    struct Over {
      int32_t result, input;
    };
    std::vector<Over> over;
    int64_t step = 0;
    PassedOver passed_over;
  };
  Launch(Plan plan, StopHandler stop);

  const ProgramPtr program;
  const int64_t number, step;

  // Runs to the end. Throws UserError of an instruction, or what the stop handler threw: the launch is then abandoned.
  void run();
  // Runs a stopped launch up to, not including, `instruction`, unfused. From any thread. Throws UserError if it is not stopped.
  void run_until(int instruction);

  int next() const { return next_.load(); }
  int count() const { return count_; }
  // Statistics of results that are there, in program order.
  std::vector<Measured> measured();
  // What a run of the same instructions on the same inputs takes; no results. Throws UserError if an input may not be read any more.
  Plan inputs_again();
  // The value if it is in memory and may be read, else data null.
  Value value(int local_id, LeasePtr* lease);

 private:
  void plan_hooks(const PassedOver& passed_over);
  void run_segment(int begin, int end, bool unfused);
  void run_elsewhere(int begin, int end);
  void place_over_inputs(const SegmentView& view);
  void allocate_kept(int begin, int end);
  std::shared_ptr<Storage> memory_between_areas(const SegmentView& view) const;
  void log_workspace(const SegmentView& view, const Storage& workspace, int64_t start_ns);
  void measure_in_memory(int begin, int end);
  HookEvent event_of(const Hook& h) const;
  void publish_inputs();
  void publish_results(int begin, int end);
  bool report_check();  // whether there was something to report
  void report_measured();
  Value& result(int instruction) { return values_[static_cast<size_t>(code_->value_of(instruction))]; }
  // The result where it was made.
  Value& where(int instruction) { return device_ ? device_->values()[static_cast<size_t>(code_->value_of(instruction))] : result(instruction); }
  uint8_t& keep(int instruction) { return keep_[static_cast<size_t>(code_->value_of(instruction))]; }

  const StopHandler stop_;
  const std::shared_ptr<ProgramCode> code_;
  const std::vector<int64_t> geometry_;
  const int count_;
  std::vector<Value> values_;
  const std::vector<LeasePtr> leases_;
  const std::vector<Plan::Over> over_;
  const std::vector<uint8_t> wanted_;  // keep of the plan
  std::vector<uint8_t> keep_;          // and what hooks want besides
  std::atomic<int> next_{0};
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;                   // running a segment, or reading a value
  int64_t first_instruction_ = 0;      // on the clock of the memory log

  std::vector<Hook> hooks_;            // due this time, by instruction
  std::vector<Hook> of_inputs_;        // the same on inputs
  std::vector<int> stops_;             // instructions, ascending
  int check_mask_ = 0;                 // of the process
  bool measuring_ = false;             // every float result
  std::vector<HookSite> sites_;        // measured by tile code, ascending
  std::vector<HookSite> after_;        // measured in memory when their segment is done
  std::vector<Stats> stats_;           // by HookSite::slot
  std::vector<int> checks_;
  std::vector<SegmentPtr> segments_;   // run so far
  const Profile& profile_ = current_profile();  // the device the launch began on
  std::unique_ptr<DeviceValues> device_;         // its values there, on a device with memory of its own
};

}  // namespace dvm
