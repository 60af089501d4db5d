// native_tests [SCENARIO...] [--effort N]: runs the named scenarios, or all.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kit.h"

namespace dvm::test {

static std::vector<Scenario>& registered() {
  static std::vector<Scenario> all;
  return all;
}
const std::vector<Scenario>& scenarios() { return registered(); }
Register::Register(Scenario s) { registered().push_back(s); }

void check_that(bool ok, const char* file, int line, const std::string& what) {
  if (ok) return;
  std::fprintf(stderr, "%s:%d: %s\n", file, line, what.c_str());
  std::abort();
}

std::mutex& gil() {
  static std::mutex lock;
  return lock;
}

}  // namespace dvm::test

int main(int argc, char** argv) {
  int effort = 1;
  std::vector<std::string> wanted;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--effort") && i + 1 < argc) effort = std::atoi(argv[++i]);
    else wanted.push_back(argv[i]);
  }
  for (const auto& scenario : dvm::test::scenarios()) {
    bool named = wanted.empty();
    for (const std::string& name : wanted) named = named || name == scenario.name;
    if (!named) continue;
    const auto start = std::chrono::steady_clock::now();
    scenario.run(effort);
    std::printf("%-24s %6.1f s\n", scenario.name, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    std::fflush(stdout);
  }
}
