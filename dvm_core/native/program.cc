#include "program_cache.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "memory.h"
#include "optable.h"
#include "passes.h"

namespace dvm {

const uint64_t selector_hash_mask = [] {
  const char* bits = std::getenv("DVM_HASH_BITS");
  const int n = bits ? std::atoi(bits) : 64;
  return n >= 64 || n < 0 ? ~uint64_t{0} : (uint64_t{1} << n) - 1;
}();

namespace {

constexpr size_t kPrograms = 4096, kTimes = 4096;
constexpr int64_t kSegments = 8192;  // of all programs together

constexpr size_t kCluster = 4;       // segments with tile code of their own that a new shape is compared with

std::atomic<int64_t> hits{0}, misses{0}, joins{0}, warmed{0}, evictions{0}, patches{0}, tile_elements{0};
std::atomic<int64_t> segments_held{0}, bytes_held{0};
std::atomic<bool> clusters{true};
std::atomic<uint64_t> uses{0};

// The last compile times, in a ring.
struct Times {
  std::mutex mutex;
  std::vector<double> us;
  size_t next = 0;
  double max = 0;

  void add(double t) {
    std::lock_guard lock(mutex);
    if (us.size() < kTimes) us.push_back(t);
    else us[next] = t;
    next = (next + 1) % kTimes;
    max = std::max(max, t);
  }

  SelectorStats::Times told() {
    std::lock_guard lock(mutex);
    if (us.empty()) return {};
    std::vector<double> sorted = us;
    std::sort(sorted.begin(), sorted.end());
    const auto at = [&](double q) { return sorted[std::min(sorted.size() - 1, static_cast<size_t>(q * static_cast<double>(sorted.size())))]; };
    return {at(0.5), at(0.99), max};
  }
};
Times& compile_times(bool joined) {
  static Times* t = new Times[2];
  return t[joined];
}

struct Registry {
  std::mutex mutex;
  std::list<ProgramPtr> recent;  // front: used last
  std::unordered_map<std::vector<uint32_t>, std::list<ProgramPtr>::iterator, WordsHash> by_key;
  std::map<int64_t, ProgramPtr> by_id;
  int64_t next_id = 1;
};
Registry& registry() {
  static Registry* r = new Registry;
  return *r;
}

void put(std::vector<int64_t>& words, const SegmentRequest& r, int64_t elements) {
  words.push_back(static_cast<int64_t>(r.begin) << 32 | r.end);
  words.push_back(elements << 1 | static_cast<int64_t>(r.unfused));
  words.push_back(reinterpret_cast<intptr_t>(r.profile));
  uint64_t bits = 0;
  for (size_t i = 0; i < r.keep.size(); ++i) {
    bits |= static_cast<uint64_t>(r.keep[i] != 0) << (i % 64);
    if (i % 64 == 63 || i + 1 == r.keep.size()) words.push_back(static_cast<int64_t>(std::exchange(bits, 0)));
  }
  for (const HookSite& h : r.hooks) {
    words.push_back(static_cast<int64_t>(h.instr) << 32 | h.kind);
    words.push_back(h.slot);
  }
}

// Drops the quarter that was not used for longest: shapes that come once must not pile up.
void forget_old_segments() {
  std::vector<uint64_t> ticks;
  const std::vector<ProgramPtr> programs = all_programs();
  for (const ProgramPtr& p : programs) p->list_uses(ticks);
  if (ticks.empty()) return;
  const auto cut = ticks.begin() + static_cast<std::ptrdiff_t>(ticks.size() / 4);
  std::nth_element(ticks.begin(), cut, ticks.end());
  for (const ProgramPtr& p : programs) p->forget_segments(*cut);
}

// Views that needed no area, and slots that took over their operand's bytes.
int64_t avoided(const ProgramCode& code, const SegmentRequest& r, const SegmentView& seen) {
  std::vector<uint8_t> worked(code.instrs.size(), 0);
  for (const AreaInfo& area : seen.areas)
    for (const int i : area.instrs) worked[static_cast<size_t>(i)] = 1;
  int64_t n = 0;
  for (int i = r.begin; i < r.end; ++i) n += op_info(code.instrs[static_cast<size_t>(i)].op).cls == 'V' && !worked[static_cast<size_t>(i)];
  for (const SlotInfo& slot : seen.slots) n += slot.in_place_of >= 0;
  return n;
}

}  // namespace

Program::Program(int64_t id_, std::vector<uint32_t> key_, std::shared_ptr<ProgramCode> code, bool backward_)
    : id(id_), key(std::move(key_)), name(code->name), backward(backward_), times(times_of(name)), code_(std::move(code)) {}

std::shared_ptr<ProgramCode> Program::code() {
  std::lock_guard lock(mutex_);
  return code_;
}

void Program::note_shapes(const std::vector<int64_t>& geometry) {
  times->note_shapes(WordsHash{}(geometry) * 31 + static_cast<uint64_t>(id));
  size_t at = 0;
  for (const ProgramCode::Input& in : code_->inputs)
    for (int axis = 0; axis < in.shape.rank; ++axis, ++at) {
      const int64_t extent = in.shape[axis];
      if (at == seen_.size()) seen_.emplace_back(extent, extent);
      seen_[at] = {std::min(seen_[at].first, extent), std::max(seen_[at].second, extent)};
    }
}

std::vector<std::pair<int64_t, int64_t>> Program::extents_seen() {
  std::lock_guard lock(mutex_);
  return seen_;
}

std::vector<int64_t> Program::geometry() {
  std::lock_guard lock(mutex_);
  return geometry_;
}

void Program::count_patches(int64_t n) {
  if (n) patches.fetch_add(n, std::memory_order_relaxed);
}

SegmentPtr Program::segment(const ProgramCode& code, const std::vector<int64_t>& geometry, const SegmentRequest& request, bool counted) {
  std::vector<int64_t> words;
  words.reserve(geometry.size() + 4 + request.keep.size() / 64 + 2 * request.hooks.size());
  words = geometry;
  CompileOptions options;
  options.unfused = request.unfused;
  options.profile = request.profile;
  options.tile_elements = tile_elements.load();
  put(words, request, options.tile_elements);
  {
    std::lock_guard lock(mutex_);
    const auto found = segments_.find(words);
    if (found != segments_.end()) {
      if (counted) {
        hits.fetch_add(1, std::memory_order_relaxed);
        times->hits.fetch_add(1, std::memory_order_relaxed);
        found->second->uses.fetch_add(1, std::memory_order_relaxed);
      }
      found->second->last_used.store(uses.fetch_add(1, std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      if (!request.measured) found->second->measured.store(false, std::memory_order_relaxed);
      return found->second;
    }
  }
  // Not under the lock: another thread may compile the same meanwhile, and the later of the two is dropped.
  const int64_t start = now_ns();
  auto made = std::make_shared<CompiledSegment>();
  std::vector<int64_t> asked;
  put(asked, request, 0);
  const std::vector<SegmentPtr> near = near_shapes(asked);
  for (const SegmentPtr& n : near) options.near.push_back(n->segment);
  made->segment = compile(code, request.begin, request.end, request.keep, request.hooks, options);
  const int joined = view(*made->segment).joined;
  made->bytes = segment_bytes(*made->segment);
  made->copies_avoided = avoided(code, request, view(*made->segment));
  if (counted) {
    made->uses.store(1, std::memory_order_relaxed);
    misses.fetch_add(1, std::memory_order_relaxed);
    times->misses.fetch_add(1, std::memory_order_relaxed);
    if (joined >= 0) joins.fetch_add(1, std::memory_order_relaxed);
    compile_times(joined >= 0).add(static_cast<double>(now_ns() - start) * 1e-3);
    const SegmentView& seen = view(*made->segment);
    spend(*times, Phase::fuse, seen.fuse_ns);
    spend(*times, Phase::tile, seen.tile_ns);
    spend(*times, Phase::encode, seen.encode_ns);
  }
  made->last_used.store(uses.fetch_add(1) + 1);
  made->measured.store(request.measured);
  {
    std::lock_guard lock(mutex_);
    const auto [at, added] = segments_.emplace(std::move(words), made);
    if (!added) return at->second;
    bytes_held.fetch_add(made->bytes);
    measured_ += request.measured;
    if (joined >= 0) {
      near[static_cast<size_t>(joined)]->last_used.store(made->last_used.load());  // whose code is taken is not forgotten first
    } else {
      auto& cluster = clusters_[asked];
      cluster.insert(cluster.begin(), made);
      if (cluster.size() > kCluster) cluster.pop_back();
    }
  }
  if (segments_held.fetch_add(1) + 1 > kSegments) forget_old_segments();
  return made;
}

void Program::warm(const ProgramCode& code, const std::vector<int64_t>& geometry, const SegmentRequest& request) {
  segment(code, geometry, request, false);
  warmed.fetch_add(1, std::memory_order_relaxed);
}

size_t Program::segment_count() {
  std::lock_guard lock(mutex_);
  return segments_.size();
}

std::vector<Program::Used> Program::used() {
  std::vector<Used> all;
  std::lock_guard lock(mutex_);
  const size_t values = code_->inputs.size() + code_->instrs.size(), words = geometry_.size() + 3 + (values + 63) / 64;
  for (const auto& [key, segment] : segments_) {
    // As put() wrote it: the range, unfused, device, kept values; more are hooks.
    const auto request = key.begin() + static_cast<std::ptrdiff_t>(geometry_.size());
    if (key.size() != words || request[0] != static_cast<int64_t>(code_->instrs.size()) || request[1] != 0 || segment->uses.load() == 0) continue;
    Used u{{key.begin(), request}, std::vector<uint8_t>(values, 0), segment->uses.load()};
    for (size_t v = 0; v < values; ++v) u.keep[v] = static_cast<uint64_t>(request[static_cast<std::ptrdiff_t>(3 + v / 64)]) >> (v % 64) & 1;
    all.push_back(std::move(u));
  }
  return all;
}

std::vector<SegmentPtr> Program::near_shapes(const std::vector<int64_t>& request) {
  std::vector<SegmentPtr> near;
  if (!clusters.load(std::memory_order_relaxed)) return near;
  std::lock_guard lock(mutex_);
  if (const auto found = clusters_.find(request); found != clusters_.end())
    for (const auto& member : found->second)
      if (SegmentPtr s = member.lock()) near.push_back(std::move(s));
  return near;
}

void Program::list_uses(std::vector<uint64_t>& ticks) {
  std::lock_guard lock(mutex_);
  for (const auto& [key, segment] : segments_) ticks.push_back(segment->last_used.load());
}

void Program::forget_segments(uint64_t tick) {
  std::lock_guard lock(mutex_);
  forget_if([&](const CompiledSegment& segment) { return segment.last_used.load() < tick; });
}

// For each set of values that is watched in one launch there is a segment, and none of them comes again once the sets are others.
void Program::forget_measured() {
  if (!std::exchange(measured_, 0)) return;
  forget_if([](const CompiledSegment& segment) { return segment.measured.load(); });
}

template <class Old>
void Program::forget_if(const Old& old) {
  const auto n = static_cast<int64_t>(std::erase_if(segments_, [&](const auto& entry) {
    const bool goes = old(*entry.second);
    if (goes) bytes_held.fetch_sub(entry.second->bytes);
    return goes;
  }));
  segments_held.fetch_sub(n);
  evictions.fetch_add(n, std::memory_order_relaxed);
  for (auto cluster = clusters_.begin(); cluster != clusters_.end();) {
    std::erase_if(cluster->second, [](const auto& member) { return member.expired(); });
    cluster = cluster->second.empty() ? clusters_.erase(cluster) : std::next(cluster);
  }
}

Program::~Program() {
  segments_held.fetch_sub(static_cast<int64_t>(segments_.size()));
  for (const auto& [key, segment] : segments_) bytes_held.fetch_sub(segment->bytes);
}

Program::Last Program::last() {
  std::lock_guard lock(mutex_);
  return last_;
}

void Program::set_last(Last last) {
  std::lock_guard lock(mutex_);
  std::swap(last_, last);
  replayed_.store(0, std::memory_order_relaxed);
}

void Program::set_replayed(uint64_t number, const std::shared_ptr<ProgramCode>& code, const std::vector<int64_t>& geometry, const SegmentPtr& segment,
                           const std::vector<uint8_t>& keep) {
  if (replayed_.load(std::memory_order_relaxed) == number) return;
  set_last({{segment}, keep, keep});
  std::lock_guard lock(mutex_);
  code_ = code;
  if (geometry_ != geometry) note_shapes(geometry);
  geometry_ = geometry;
  replayed_.store(number, std::memory_order_relaxed);
}

void Program::used_again(CompiledSegment& segment, int64_t times_used) {
  segment.uses.fetch_add(times_used, std::memory_order_relaxed);
  hits.fetch_add(times_used, std::memory_order_relaxed);
  times->hits.fetch_add(times_used, std::memory_order_relaxed);
  segment.last_used.store(uses.fetch_add(1, std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

Program::Unhooked Program::unhooked_request() {
  Unhooked u;
  {
    std::lock_guard lock(mutex_);
    u.code = code_;
    u.geometry = geometry_;
    u.request.keep = last_.wanted;
  }
  u.request.end = static_cast<int>(u.code->instrs.size());
  if (u.request.keep.empty()) {
    // Not launched yet: a program with no kept value computes nothing, so its last result stands for what will be wanted.
    u.request.keep.assign(u.code->inputs.size() + u.code->instrs.size(), 0);
    u.request.keep.back() = 1;
  }
  return u;
}

SegmentPtr Program::unhooked() {
  const Unhooked u = unhooked_request();
  return segment(*u.code, u.geometry, u.request, false);
}

std::vector<std::pair<std::string, std::string>> Program::passes() {
  const Unhooked u = unhooked_request();
  PassLog log;
  CompileOptions options;
  options.tile_elements = tile_elements.load();
  options.profile = u.request.profile;
  options.log = &log;
  compile(*u.code, u.request.begin, u.request.end, u.request.keep, {}, options);
  return std::move(log.passes);
}

std::shared_ptr<Segment> Program::compiled_for(const Profile& profile) {
  const Unhooked u = unhooked_request();
  CompileOptions options;
  options.profile = &profile;
  return compile(*u.code, u.request.begin, u.request.end, u.request.keep, {}, options);
}

std::vector<Hook> Program::hooks() {
  std::lock_guard lock(mutex_);
  return hooks_;
}

constexpr int64_t kMeasured = 64;  // segments for what is due together of the same hooked values: more are let go at the next change

void Program::change_hooks(const std::vector<Hook>& out, const std::vector<Hook>& in) {
  const auto measured = [&] {
    std::vector<std::pair<int, int>> sites;
    for (const Hook& h : hooks_)
      if (h.kind != kHookStop && !h.of_input() && (sites.empty() || sites.back() != std::pair{h.instruction, h.kind}))
        sites.emplace_back(h.instruction, h.kind);
    return sites;
  };
  const auto key = [](const Hook& h) { return std::tuple{h.instruction, h.kind, h.id}; };
  const auto before = [&](const Hook& a, const Hook& b) { return key(a) < key(b); };
  std::lock_guard lock(mutex_);
  const auto sites = measured();
  for (const auto* gone : {&out, &in})
    for (const Hook& g : *gone)
      if (const auto [first, last] = std::equal_range(hooks_.begin(), hooks_.end(), g, before); first != last) hooks_.erase(first, last);
  for (const Hook& h : in) hooks_.insert(std::upper_bound(hooks_.begin(), hooks_.end(), h, before), h);
  if (measured_ > kMeasured || measured() != sites) forget_measured();
  hooked_.store(!hooks_.empty(), std::memory_order_release);
}

void Program::clear_hooks() {
  std::lock_guard lock(mutex_);
  hooks_.clear();
  forget_measured();
  hooked_.store(false, std::memory_order_release);
}

ProgramPtr find_program(const std::vector<uint32_t>& key) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  const auto found = r.by_key.find(key);
  if (found == r.by_key.end()) return nullptr;
  r.recent.splice(r.recent.begin(), r.recent, found->second);
  return *found->second;
}

ProgramPtr add_program(std::vector<uint32_t> key, std::shared_ptr<ProgramCode> code, bool backward) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  auto program = std::make_shared<Program>(r.next_id++, std::move(key), std::move(code), backward);
  r.recent.push_front(program);
  r.by_key[program->key] = r.recent.begin();
  r.by_id[program->id] = program;
  if (r.recent.size() > kPrograms) {
    const ProgramPtr oldest = r.recent.back();
    oldest->forget();
    r.by_key.erase(oldest->key);
    r.by_id.erase(oldest->id);
    r.recent.pop_back();
  }
  return program;
}

std::vector<ProgramPtr> all_programs() {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  std::vector<ProgramPtr> all;
  for (const auto& [id, program] : r.by_id) all.push_back(program);
  return all;
}

ProgramPtr program_by_id(int64_t id) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  const auto found = r.by_id.find(id);
  if (found == r.by_id.end()) throw UserError("no program " + std::to_string(id));
  return found->second;
}

void set_clusters(bool on) { clusters.store(on); }

void set_tile_elements(int64_t n) { tile_elements.store(std::max<int64_t>(0, n)); }

SelectorStats selector_stats() {
  SelectorStats s;
  s.hits = hits.load();
  s.misses = misses.load();
  s.patches = patches.load();
  {
    std::lock_guard lock(registry().mutex);
    s.programs = registry().next_id - 1;
  }
  s.joins = joins.load();
  s.warmed = warmed.load();
  s.evictions = evictions.load();
  s.segments = segments_held.load();
  s.bytes = bytes_held.load();
  s.compiles = compile_times(false).told();
  s.joined = compile_times(true).told();
  return s;
}

}  // namespace dvm
