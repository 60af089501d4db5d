#include "memory.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <mutex>
#include <new>

#include "device_memory.h"
#include "fork.h"
#include "pages.h"

namespace dvm {
namespace {

// Classes: multiples of 128 up to 1024, above that eight steps to each doubling (at most 12.5 % unused).
constexpr int kClasses = 8 + 8 * 48;
// Smaller blocks are cut from slabs, which stay; larger ones are mapped one by one and can be given back.
constexpr size_t kSlab = size_t{1} << 20, kFirstMapped = size_t{32} << 10;
// Measured: a 2 MiB page pays from about 4 MiB on, below that the larger fault costs more than it saves.
constexpr size_t kHugeFrom = size_t{4} << 20, kHugePage = size_t{2} << 20;
constexpr int64_t kCacheFloor = int64_t{256} << 20;

struct Block {
  void* data;
  uint32_t reuse;
};

int class_of(size_t bytes) {
  if (bytes <= 1024) return bytes ? static_cast<int>((bytes - 1) / 128) : 0;
  const int k = std::bit_width(bytes - 1) - 1;
  return (k - 10) * 8 + static_cast<int>((bytes - 1) >> (k - 3));
}

size_t capacity_of(int size_class) {
  if (size_class < 8) return static_cast<size_t>(size_class + 1) * 128;
  const int k = size_class / 8 - 1 + 10;
  return static_cast<size_t>(size_class % 8 + 8 + 1) << (k - 3);
}

class Pool {
 public:
  void take(Storage* s, size_t bytes) {
    const int wanted = class_of(bytes);
    if (wanted >= kClasses) throw std::bad_alloc();
    std::lock_guard lock(mutex_);
    Block block{nullptr, 0};
    int got = wanted;
    // A block up to two classes (25 %) larger is better than fresh pages.
    for (int c = wanted; c <= wanted + 2 && c < kClasses; ++c)
      if (!free_[c].empty()) {
        block = free_[c].back();
        free_[c].pop_back();
        stats_.cached -= static_cast<int64_t>(capacity_of(c));
        ++block.reuse;
        ++stats_.reuses;
        got = c;
        break;
      }
    if (!block.data) block.data = fresh(wanted);
    last_used_[got] = ++tick_;
    s->data = block.data;
    s->bytes = bytes;
    s->capacity = capacity_of(got);
    s->reuse = block.reuse;
    s->size_class = got;
    stats_.live += static_cast<int64_t>(bytes);
    stats_.peak = std::max(stats_.peak, stats_.live);
  }

  void give(Storage* s) noexcept {
    std::lock_guard lock(mutex_);
    stats_.live -= static_cast<int64_t>(s->bytes);
    try {
      free_[s->size_class].push_back({s->data, s->reuse});
      stats_.cached += static_cast<int64_t>(s->capacity);
    } catch (const std::bad_alloc&) {
      if (s->capacity >= kFirstMapped) unmap_pages(s->data, s->capacity);
    }
  }

  void trim(int64_t target) {
    std::lock_guard lock(mutex_);
    evict(target);
  }

  MemoryStats stats() {
    std::lock_guard lock(mutex_);
    return stats_;
  }

  std::mutex& mutex() { return mutex_; }

 private:
  void* fresh(int size_class) {
    const size_t capacity = capacity_of(size_class);
    ++stats_.blocks;
    if (capacity < kFirstMapped) {
      if (slab_left_ < capacity) {
        slab_ = static_cast<char*>(map_pages(kSlab));
        slab_left_ = kSlab;
      }
      void* data = slab_;
      slab_ += capacity;
      slab_left_ -= capacity;
      return data;
    }
    // Shapes that keep changing leave blocks of sizes nobody asks for again: unused memory is bounded by the peak in use.
    const int64_t limit = std::max(kCacheFloor, stats_.peak);
    if (stats_.cached + static_cast<int64_t>(capacity) > limit) evict(std::max<int64_t>(0, limit - static_cast<int64_t>(capacity)));
    const bool huge = capacity >= kHugeFrom;
    void* data = nullptr;
    try {
      data = map_pages(capacity, huge ? kHugePage : 0);
    } catch (const std::bad_alloc&) {
      evict(0);
      data = map_pages(capacity, huge ? kHugePage : 0);
    }
    if (huge) advise_huge(data, capacity);
    return data;
  }

  // Unmaps unused blocks, the classes longest out of use first, until at most `target` unused bytes are left (slab blocks stay).
  void evict(int64_t target) {
    while (stats_.cached > target) {
      int victim = -1;
      for (int c = class_of(kFirstMapped); c < kClasses; ++c)
        if (!free_[c].empty() && (victim < 0 || last_used_[c] < last_used_[victim])) victim = c;
      if (victim < 0) return;
      for (const Block& b : free_[victim]) unmap_pages(b.data, capacity_of(victim));
      stats_.cached -= static_cast<int64_t>(free_[victim].size() * capacity_of(victim));
      stats_.blocks -= static_cast<int64_t>(free_[victim].size());
      free_[victim].clear();
    }
  }

  std::mutex mutex_;
  std::array<std::vector<Block>, kClasses> free_;
  std::array<uint64_t, kClasses> last_used_{};
  uint64_t tick_ = 0;
  char* slab_ = nullptr;
  size_t slab_left_ = 0;
  MemoryStats stats_;
};

// Never destroyed: arrays handed to Python outlive static destructors.
Pool& pool() {
  static Pool* p = [] {
    auto* made = new Pool;
    guard_at_fork(ForkRank::memory, made->mutex());
    return made;
  }();
  return *p;
}
[[maybe_unused]] const Pool& at_load = pool();  // made before any thread: none may be at it when another forks

std::atomic<int64_t> bytes_copied{0}, copies{0}, copies_avoided{0};

}  // namespace

Storage::~Storage() {
  if (!data) return;
  if (log_id >= 0) log_freed(log_id);
  if (size_class < 0) device_let_go(*this);
  else pool().give(this);
}

std::shared_ptr<Storage> allocate_unlogged(size_t bytes) {
  auto storage = std::make_shared<Storage>();
  pool().take(storage.get(), bytes);
  return storage;
}

std::shared_ptr<Storage> allocate(size_t bytes, const BufferTag* tag) {
  auto storage = allocate_unlogged(bytes);
  if (memory_log_on()) storage->log_id = log_buffer(storage->data, static_cast<int64_t>(bytes), tag ? *tag : BufferTag{});
  return storage;
}

void trim_memory() { pool().trim(0); }
MemoryStats memory_stats() { return pool().stats(); }

void count_copy(int64_t bytes) {
  bytes_copied.fetch_add(bytes, std::memory_order_relaxed);
  copies.fetch_add(1, std::memory_order_relaxed);
}
void count_copy_avoided(int64_t times) { copies_avoided.fetch_add(times, std::memory_order_relaxed); }
CopyStats copy_stats() { return {bytes_copied.load(), copies.load(), copies_avoided.load()}; }

}  // namespace dvm
