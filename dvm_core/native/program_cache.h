// Programs by structure, and each program's compiled segments by geometry: that second table is the selector.
#pragma once
#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "hooks.h"
#include "profile.h"
#include "program.h"
#include "spent.h"

namespace dvm {

// For tests: with DVM_HASH_BITS=n in the environment hashes have n bits, so that keys collide. They are compared whole.
extern const uint64_t selector_hash_mask;

struct WordsHash {
  template <class Word>
  size_t operator()(const std::vector<Word>& words) const {
    uint64_t h = 0x9e3779b97f4a7c15ull + words.size();
    for (const Word w : words) {
      h = (h ^ static_cast<uint64_t>(w)) * 0xff51afd7ed558ccdull;
      h ^= h >> 32;
    }
    return static_cast<size_t>(h & selector_hash_mask);
  }
};

// What a segment is compiled for. `geometry`: the program's input shapes and strides, own shapes, slice bounds and depths.
struct SegmentRequest {
  int begin = 0, end = 0;
  std::vector<uint8_t> keep;
  std::vector<HookSite> hooks;
  bool unfused = false;
  bool measured = false;  // for a launch that has something to watch: of use until the program's hooks change
  const Profile* profile = &current_profile();
};

// A segment's tile code is shared by all launches; one launch at a time runs it.
struct CompiledSegment {
  std::shared_ptr<Segment> segment;
  std::mutex running;
  std::atomic<uint64_t> last_used{0};  // on the selector's clock
  std::atomic<int64_t> uses{0};        // by launches
  std::atomic<bool> measured{false};   // as asked, and by no other launch since
  int64_t copies_avoided = 0;  // per run: results written in place, views that are strides only
  int64_t bytes = 0;
};
using SegmentPtr = std::shared_ptr<CompiledSegment>;

class Program {
 public:
  ~Program();
  Program(int64_t id, std::vector<uint32_t> key, std::shared_ptr<ProgramCode> code, bool backward);

  const int64_t id;
  const std::vector<uint32_t> key;
  const std::string name;
  const bool backward;
  const FunctionTimesPtr times;  // of the function it was captured from
  std::atomic<int64_t> launches{0};

  // The structure with the shapes and immediates of the last launch; replaced, never changed, while a launch holds it.
  std::shared_ptr<ProgramCode> code();
  std::vector<int64_t> geometry();
  // The code for a new launch: the last one's, patched in place if nobody holds it. `patch` writes shapes and immediates and
  // returns how many instructions changed.
  template <class Patch>
  std::shared_ptr<ProgramCode> patched(std::vector<int64_t> geometry, Patch&& patch) {
    std::lock_guard lock(mutex_);
    if (code_.use_count() != 1) code_ = std::make_shared<ProgramCode>(*code_);
    count_patches(patch(*code_));
    if (geometry_ != geometry) note_shapes(geometry);
    geometry_ = std::move(geometry);
    replayed_.store(0, std::memory_order_relaxed);
    return code_;
  }

  // The compiled segment, from the selector or fresh. `counted`: a launch's request, as opposed to the debugger's curiosity.
  SegmentPtr segment(const ProgramCode& code, const std::vector<int64_t>& geometry, const SegmentRequest& request, bool counted = true);

  // Makes the segment before a launch asks for it.
  void warm(const ProgramCode& code, const std::vector<int64_t>& geometry, const SegmentRequest& request);
  // The whole program's segments, without hooks: for which shapes and kept values, and how many launches used them.
  struct Used {
    std::vector<int64_t> geometry;
    std::vector<uint8_t> keep;
    int64_t uses = 0;
  };
  std::vector<Used> used();

  size_t segment_count();

  // Smallest and largest extent of every dimension of the inputs over all launches, input after input.
  std::vector<std::pair<int64_t, int64_t>> extents_seen();

  // Of the last launch, for the debugger.
  struct Last {
    std::vector<SegmentPtr> segments;
    std::vector<uint8_t> wanted, kept;  // by local id: as the flush asked, and with what hooks kept besides
  };
  Last last();
  void set_last(Last last);
  // The same for a replay of this number, which brings its own code. Costs a comparison if it was the last one as well.
  void set_replayed(uint64_t number, const std::shared_ptr<ProgramCode>& code, const std::vector<int64_t>& geometry, const SegmentPtr& segment,
                    const std::vector<uint8_t>& keep);
  // A segment taken from the selector before has been run again.
  void used_again(CompiledSegment& segment, int64_t times_used);
  // Compiled as if there were no hooks, for the last launch's shapes and kept values.
  SegmentPtr unhooked();
  // What each pass made of it: compiled anew, for the same.
  std::vector<std::pair<std::string, std::string>> passes();
  // Code for a device at the last shapes with no hooks, compiled anew; nothing runs.
  std::shared_ptr<Segment> compiled_for(const Profile& profile);

  std::vector<Hook> hooks();
  bool hooked() const { return hooked_.load(std::memory_order_acquire); }
  // Takes out and sets hooks at a stroke: each launch has all of them or none. Of those to take out instruction, kind and id count.
  void change_hooks(const std::vector<Hook>& out, const std::vector<Hook>& in);
  void clear_hooks();

  // No longer among the programs: hooks are set on another one of the same key from now on.
  bool forgotten() const { return forgotten_.load(std::memory_order_acquire); }
  void forget() { forgotten_.store(true, std::memory_order_release); }

  // For the selector's bound: when each segment was last used; forgets those used before `tick`.
  void list_uses(std::vector<uint64_t>& ticks);
  void forget_segments(uint64_t tick);

 private:
  struct Unhooked {
    std::shared_ptr<ProgramCode> code;
    std::vector<int64_t> geometry;
    SegmentRequest request;
  };
  Unhooked unhooked_request();
  std::vector<SegmentPtr> near_shapes(const std::vector<int64_t>& request);
  // Under the lock.
  template <class Old>
  void forget_if(const Old& old);
  void forget_measured();
  static void count_patches(int64_t n);
  void note_shapes(const std::vector<int64_t>& geometry);
  std::mutex mutex_;
  std::shared_ptr<ProgramCode> code_;
  std::vector<int64_t> geometry_;
  std::vector<std::pair<int64_t, int64_t>> seen_;
  std::unordered_map<std::vector<int64_t>, SegmentPtr, WordsHash> segments_;
  // What is asked for (range, kept values, hooks, device) to segments of other shapes, whose tile code a near shape may take.
  std::unordered_map<std::vector<int64_t>, std::vector<std::weak_ptr<CompiledSegment>>, WordsHash> clusters_;
  Last last_;
  std::atomic<uint64_t> replayed_{0};  // number of the replay that ran last; 0: a launch did
  std::vector<Hook> hooks_;
  int64_t measured_ = 0;  // segments, at most
  std::atomic<bool> hooked_{false}, forgotten_{false};
};
using ProgramPtr = std::shared_ptr<Program>;

// The program with this key, or null. The 4096 used last are kept.
ProgramPtr find_program(const std::vector<uint32_t>& key);
ProgramPtr add_program(std::vector<uint32_t> key, std::shared_ptr<ProgramCode> code, bool backward);
std::vector<ProgramPtr> all_programs();      // by id
ProgramPtr program_by_id(int64_t id);        // throws UserError
void set_tile_elements(int64_t n);
void set_clusters(bool on);  // for tests and benchmarks: whether near shapes share tile code

struct SelectorStats {
  int64_t programs = 0, hits = 0, misses = 0, joins = 0, warmed = 0, evictions = 0, segments = 0, bytes = 0, patches = 0;
  struct Times {
    double p50 = 0, p99 = 0, max = 0;  // microseconds, of the last 4096
  } compiles, joined;  // segments with tile code of their own, and with a near shape's
};
SelectorStats selector_stats();
int64_t launch_count();  // of the process
int64_t count_launch();  // one more; its number, from 1

}  // namespace dvm
