// Tile code in pages of its own, read-only. Small programs share the pages of a chunk; what is written there is written by the kernel, or, where
// it does not do that, by lifting the protection of that chunk alone.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace dvm {

class CodeChunk;

class CodePages {
 public:
  CodePages() = default;
  // Copies the words and makes them read-only. Throws std::bad_alloc or std::system_error.
  explicit CodePages(const std::vector<uint64_t>& words);
  CodePages(CodePages&& other) noexcept { swap(other); }
  CodePages& operator=(CodePages&& other) noexcept {
    swap(other);
    return *this;
  }
  CodePages(const CodePages&) = delete;
  CodePages& operator=(const CodePages&) = delete;
  ~CodePages();

  const uint64_t* data() const { return words_; }
  size_t size() const { return count_; }
  uint64_t operator[](size_t i) const { return words_[i]; }

 private:
  void swap(CodePages& other) noexcept {
    std::swap(chunk_, other.chunk_);
    std::swap(words_, other.words_);
    std::swap(count_, other.count_);
  }
  CodeChunk* chunk_ = nullptr;
  const uint64_t* words_ = nullptr;
  size_t count_ = 0;
};

}  // namespace dvm
