#include "spent.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "memory.h"

namespace dvm {

const char* const kPhaseNames[kPhases] = {"record", "fuse", "tile", "encode", "bind", "dispatch", "kernels", "waiting"};

namespace {

constexpr size_t kFunctions = 1024;
const char* const kGone = "(other functions)";
constexpr int64_t kLongestSample = 20'000;
constexpr size_t kShapes = 4096;

struct Table {
  std::mutex mutex;
  std::vector<FunctionTimesPtr> functions;
  std::unordered_map<std::string, FunctionTimesPtr> by_name;
  size_t sweep_at = kFunctions;

  FunctionTimesPtr entry(const std::string& name) {
    FunctionTimesPtr& known = by_name[name];
    if (!known) functions.push_back(known = std::make_shared<FunctionTimes>(name));
    return known;
  }
  // What no graph and no program holds any more is added up in one entry.
  void sweep() {
    const FunctionTimesPtr gone = entry(kGone);
    std::erase_if(functions, [&](FunctionTimesPtr& f) {
      if (f.use_count() > 2 || f == gone) return false;  // two: this list and the map
      gone->add(*f);
      by_name.erase(f->name);
      return true;
    });
    sweep_at = std::max(kFunctions, 2 * functions.size());
  }
};
Table& table() {
  static Table* t = new Table;
  return *t;
}

// Of the calling thread, since it began: told to a phase, or to nobody.
thread_local int64_t spent_here = 0;

thread_local Sampling sampling;

}  // namespace

void FunctionTimes::note_shapes(uint64_t hash) {
  changes_.fetch_add(1, std::memory_order_relaxed);
  std::lock_guard lock(mutex_);
  if (seen_.size() < kShapes && seen_.insert(hash).second) shapes_.fetch_add(1, std::memory_order_relaxed);
}

void FunctionTimes::add(const FunctionTimes& other) {
  launches += other.launches;
  instructions += other.instructions;
  hits += other.hits;
  misses += other.misses;
  changes_ += other.changes_;
  shapes_ += other.shapes_;
  for (int p = 0; p < kPhases; ++p) ns[p] += other.ns[p];
}

FunctionTimesPtr times_of(const std::string& name) {
  Table& t = table();
  std::lock_guard lock(t.mutex);
  if (t.functions.size() >= t.sweep_at && !t.by_name.count(name)) t.sweep();
  return t.entry(name);
}

std::vector<FunctionTimesPtr> all_times() {
  Table& t = table();
  std::lock_guard lock(t.mutex);
  return t.functions;
}

void spend(FunctionTimes& function, Phase phase, int64_t ns, int stands_for) {
  if (ns <= 0) return;
  function.ns[static_cast<int>(phase)].fetch_add(ns < kLongestSample ? ns * stands_for : ns, std::memory_order_relaxed);
  spent_here += ns;
}

SpanOf::SpanOf(FunctionTimes* function, Phase phase, int stands_for)
    : function_(function), phase_(phase), stands_for_(stands_for), spent_before_(spent_here), start_(now_ns()) {}

SpanOf::~SpanOf() {
  const int64_t life = now_ns() - start_, left = life - (spent_here - spent_before_);
  if (function_) spend(*function_, phase_, left, stands_for_);
  spent_here = spent_before_ + life;
}

RecordSample::RecordSample() : stands_for_(sampling.next()) {
  if (stands_for_) start_ = now_ns();
}

RecordSample::~RecordSample() {
  if (start_ >= 0) sampling.again();
}

void RecordSample::done(FunctionTimes& function) {
  if (start_ < 0) return;
  // A sample that the system interrupted must not stand for sixteen.
  const int64_t ns = std::min(now_ns() - start_ - clock_cost_ns(), kLongestSample - 1);
  spend(function, Phase::record, ns, stands_for_);
  start_ = -1;
}

int64_t clock_cost_ns() {
  static const int64_t cost = [] {
    int64_t least = 1000;
    for (int i = 0; i < 64; ++i) {
      const int64_t start = now_ns();
      least = std::min(least, now_ns() - start);
    }
    return least;
  }();
  return cost;
}

}  // namespace dvm
