#include "codepages.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>

#include "fork.h"
#include "pages.h"

namespace dvm {
namespace {

// A mapping costs about 5 µs for its system calls and first page fault, as much as compiling 20 instructions. Pages nobody may touch on both sides keep the
// kernel from joining and splitting mappings.
constexpr size_t kChunkWords = size_t(32) << 10 >> 3;
constexpr size_t kLine = 8;  // words code is aligned to

size_t lines(size_t words) { return (words + kLine - 1) / kLine * kLine; }

}  // namespace

class CodeChunk {
 public:
  explicit CodeChunk(size_t words) {
    const size_t page = page_size(), bytes = (words * sizeof(uint64_t) + page - 1) / page * page;
    mapped_ = bytes + 2 * page;
    base_ = static_cast<char*>(map_pages(mapped_));
    words_ = reinterpret_cast<uint64_t*>(base_ + page);
    bytes_ = bytes;
    free_ = {{0, bytes / sizeof(uint64_t)}};
    try {
      protect_pages(base_, page, Protection::kNone);
      protect_pages(base_ + page + bytes, page, Protection::kNone);
      protect_pages(words_, bytes_, Protection::kRead);
    } catch (...) {
      unmap_pages(base_, mapped_);
      throw;
    }
  }
  CodeChunk(const CodeChunk&) = delete;
  CodeChunk& operator=(const CodeChunk&) = delete;
  ~CodeChunk() { unmap_pages(base_, mapped_); }

  bool shared() const { return bytes_ <= kChunkWords * sizeof(uint64_t); }
  bool empty() const { return free_.size() == 1 && free_[0].count * sizeof(uint64_t) == bytes_; }

  // Null: no room.
  const uint64_t* place(const std::vector<uint64_t>& words) {
    const size_t count = lines(words.size());
    // Between n placed ones there are at most n + 1 free ranges, so that giving back never allocates.
    if (free_.capacity() < placed_ + 2) free_.reserve(2 * (placed_ + 2));
    const auto at = std::find_if(free_.begin(), free_.end(), [count](const Range& r) { return r.count >= count; });
    if (at == free_.end()) return nullptr;
    uint64_t* to = words_ + at->first;
    if (!write_protected(to, words.data(), words.size() * sizeof(uint64_t))) {
      protect_pages(words_, bytes_, Protection::kWrite);
      std::memcpy(to, words.data(), words.size() * sizeof(uint64_t));
      protect_pages(words_, bytes_, Protection::kRead);
    }
    at->first += count;
    at->count -= count;
    ++placed_;
    if (!at->count) free_.erase(at);
    return to;
  }

  void give_back(const uint64_t* words, size_t count) {
    const Range r{static_cast<size_t>(words - words_), lines(count)};
    auto at = std::lower_bound(free_.begin(), free_.end(), r, [](const Range& a, const Range& b) { return a.first < b.first; });
    at = free_.insert(at, r);  // within the room place() has made
    --placed_;
    if (const auto next = at + 1; next != free_.end() && at->first + at->count == next->first) {
      at->count += next->count;
      free_.erase(next);
    }
    if (at == free_.begin()) return;
    if (const auto before = at - 1; before->first + before->count == at->first) {
      before->count += at->count;
      free_.erase(at);
    }
  }

 private:
  struct Range {
    size_t first, count;
  };
  char* base_;
  uint64_t* words_;
  size_t bytes_, mapped_, placed_ = 0;
  std::vector<Range> free_;  // by address
};

namespace {

struct Arena {
  std::mutex mutex;
  std::vector<std::unique_ptr<CodeChunk>> chunks;
};
Arena& arena() {
  static Arena* a = [] {
    auto* made = new Arena;
    guard_at_fork(ForkRank::code, made->mutex);
    return made;
  }();
  return *a;
}
[[maybe_unused]] const Arena& at_load = arena();  // made before any thread: none may be at it when another forks

}  // namespace

CodePages::CodePages(const std::vector<uint64_t>& words) : count_(words.size()) {
  if (!count_) return;
  Arena& a = arena();
  std::lock_guard lock(a.mutex);
  // The newest chunk has room more often than the others.
  for (auto chunk = a.chunks.rbegin(); chunk != a.chunks.rend() && !words_; ++chunk) {
    words_ = (*chunk)->place(words);
    chunk_ = chunk->get();
  }
  if (words_) return;
  a.chunks.push_back(std::make_unique<CodeChunk>(std::max(kChunkWords, lines(count_))));
  chunk_ = a.chunks.back().get();
  words_ = chunk_->place(words);
}

CodePages::~CodePages() {
  if (!words_) return;
  Arena& a = arena();
  std::lock_guard lock(a.mutex);
  chunk_->give_back(words_, count_);
  if (!chunk_->empty()) return;
  // One that is empty stays: code that comes and goes at a chunk's end would map and unmap one each time, three times the work of a compile.
  const auto spare = [this](const auto& c) { return c.get() != chunk_ && c->shared() && c->empty(); };
  if (chunk_->shared() && std::none_of(a.chunks.begin(), a.chunks.end(), spare)) return;
  std::erase_if(a.chunks, [this](const auto& c) { return c.get() == chunk_; });
}

}  // namespace dvm
