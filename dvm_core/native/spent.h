// The VM's own time, told apart by phase and captured function. A clock read costs about 20 ns: there are two in a launch besides those
// between areas; recording, dispatching and replays of a few microseconds are measured by samples.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

namespace dvm {

enum class Phase { record, fuse, tile, encode, bind, dispatch, kernels, waiting, count };
inline constexpr int kPhases = static_cast<int>(Phase::count);
extern const char* const kPhaseNames[kPhases];

// Of the functions (graphs) of one name. Nanoseconds are those of the launching thread: helpers work beside it.
struct FunctionTimes {
  explicit FunctionTimes(std::string name_) : name(std::move(name_)) {}
  const std::string name;
  std::atomic<int64_t> launches{0}, instructions{0}, hits{0}, misses{0};
  std::atomic<int64_t> ns[kPhases] = {};

  // Shapes (a hash of them) that its former launch had not. Counted: changes, and up to 4096 that differ.
  void note_shapes(uint64_t hash);
  int64_t changes() const { return changes_.load(std::memory_order_relaxed); }
  int64_t shapes() const { return shapes_.load(std::memory_order_relaxed); }

  void add(const FunctionTimes& other);

 private:
  std::atomic<int64_t> changes_{0}, shapes_{0};
  std::mutex mutex_;
  std::unordered_set<uint64_t> seen_;
};
using FunctionTimesPtr = std::shared_ptr<FunctionTimes>;
// The entry of that name, made if there is none. Of more than a thousand, those that nobody holds are added up in one: names may be without end.
FunctionTimesPtr times_of(const std::string& name);
std::vector<FunctionTimesPtr> all_times();  // in the order of their first graph

// Adds to a phase; a Span around it leaves this time out. stands_for: a sample, for so many times (for one if the system interrupted it).
void spend(FunctionTimes& function, Phase phase, int64_t ns, int stands_for = 1);

// What is left of its life, after what is spent within it, goes to `phase` (null: to nobody, the user's stops).
class SpanOf {
 public:
  SpanOf(FunctionTimes* function, Phase phase, int stands_for = 1);
  ~SpanOf();
  SpanOf(const SpanOf&) = delete;

 private:
  FunctionTimes* const function_;
  const Phase phase_;
  const int stands_for_;
  const int64_t spent_before_, start_;
};

// Which of many are measured: the first, then one of 9 to 24, in intervals that vary, or a function of sixteen ops would show one of them.
class Sampling {
 public:
  // For how many this one stands, itself included; 0: it is not measured.
  int next() {
    if (--left_ > 0) return 0;
    const int stands_for = interval_;
    random_ = random_ * 1664525u + 1013904223u;
    left_ = interval_ = 9 + static_cast<int>(random_ >> 28);
    return stands_for;
  }
  void again() { left_ = 1; }  // what was to be measured failed: the next one is

 private:
  int left_ = 1, interval_ = 1;
  uint32_t random_ = 0x9e3779b9;
};

// Every sixteenth recording or so is timed, and stands for those since the last.
class RecordSample {
 public:
  RecordSample();
  ~RecordSample();
  RecordSample(const RecordSample&) = delete;
  void done(FunctionTimes& function);

 private:
  int stands_for_ = 0;
  int64_t start_ = -1;
};

// What one reading of the clock takes.
int64_t clock_cost_ns();

}  // namespace dvm
