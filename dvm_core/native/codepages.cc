#include "codepages.h"

#include <cstring>
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
    make_read_only(words_, bytes_);
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

}  // namespace dvm
