// Code pages: read-only for everybody at all times, whoever writes into the chunk they share; a child process writes into its own.
#include <cinttypes>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#ifdef __linux__
#include <sys/wait.h>
#include <unistd.h>
#endif

#include "codepages.h"
#include "kit.h"

namespace dvm::test {
namespace {

std::vector<uint64_t> words_from(uint64_t first, size_t count = 40) {
  std::vector<uint64_t> words(count);
  std::iota(words.begin(), words.end(), first);
  return words;
}

bool holds(const CodePages& pages, const std::vector<uint64_t>& words) {
  return pages.size() == words.size() && std::equal(words.begin(), words.end(), pages.data());
}

#ifdef __linux__
// What may be done at this address, as the system tells it: "r--p".
std::string allowed(const void* at) {
  std::string found;
  std::FILE* maps = std::fopen("/proc/self/maps", "r");
  uintptr_t from, to;
  char flags[5];
  while (std::fscanf(maps, "%" SCNxPTR "-%" SCNxPTR " %4s%*[^\n]", &from, &to, flags) == 3)
    if (from <= reinterpret_cast<uintptr_t>(at) && reinterpret_cast<uintptr_t>(at) < to) found = flags;
  std::fclose(maps);
  return found;
}
#endif

}  // namespace

DVM_SCENARIO(code_pages) {
  // What is given back is written again, beside what stays.
  std::vector<CodePages> kept;
  for (uint64_t n = 0; n < 300; ++n) {
    const CodePages gone(words_from(7 * n, 1 + n % 50));
    kept.emplace_back(words_from(1000 * n, 1 + n % 90));
  }
  for (uint64_t n = 0; n < 300; ++n) CHECK(holds(kept[n], words_from(1000 * n, 1 + n % 90)), "code " + std::to_string(n) + " has changed");
#ifdef __linux__
  for (const CodePages& pages : kept) CHECK(allowed(pages.data()) == "r--p", "code may be written: " + allowed(pages.data()));

  // Both write at the same address next, each in its own memory.
  const pid_t child = fork();
  if (!child) {
    const CodePages theirs(words_from(5));
    _exit(holds(theirs, words_from(5)) && allowed(theirs.data()) == "r--p" ? 0 : 1);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && status == 0, "the child's code is not what it wrote");
  const CodePages ours(words_from(9));
  CHECK(holds(ours, words_from(9)), "the code is not what was written");
  for (uint64_t n = 0; n < 300; ++n) CHECK(holds(kept[n], words_from(1000 * n, 1 + n % 90)), "a child has changed code " + std::to_string(n));
#endif
}

}  // namespace dvm::test
