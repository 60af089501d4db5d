#include "codepages.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "pages.h"

namespace dvm {

CodePages::CodePages(const std::vector<uint64_t>& words) : count_(words.size()) {
  if (!count_) return;
  const size_t page = page_size(), bytes = (count_ * sizeof(uint64_t) + page - 1) / page * page;
  words_ = static_cast<uint64_t*>(map_pages(bytes));
  bytes_ = bytes;
  std::memcpy(words_, words.data(), count_ * sizeof(uint64_t));
  try {
    protect_pages(words_, bytes_, false);
  } catch (...) {
    unmap_pages(words_, bytes_);
    throw;
  }
}

CodePages::~CodePages() {
  if (words_) unmap_pages(words_, bytes_);
}

void CodePages::swap(CodePages& other) noexcept {
  std::swap(words_, other.words_);
  std::swap(count_, other.count_);
  std::swap(bytes_, other.bytes_);
}

void CodePages::patch(size_t first, const std::vector<uint64_t>& words) {
  if (first > count_ || words.size() > count_ - first)
    throw std::out_of_range("code patch of words " + std::to_string(first) + ".." + std::to_string(first + words.size()) + " in code of " +
                            std::to_string(count_) + " words");
  if (words.empty()) return;
  // Only the pages that hold the words become writable, and only for the copy.
  const size_t page = page_size();
  char* base = reinterpret_cast<char*>(words_);
  const size_t from = first * sizeof(uint64_t) / page * page;
  const size_t to = ((first + words.size()) * sizeof(uint64_t) + page - 1) / page * page;
  protect_pages(base + from, to - from, true);
  std::memcpy(words_ + first, words.data(), words.size() * sizeof(uint64_t));
  protect_pages(base + from, to - from, false);
}

}  // namespace dvm
