// What the native tests share: scenarios by name, checks, random numbers, and the lock that stands for Python's.
#pragma once
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "graph.h"

namespace dvm::test {

struct Scenario {
  const char* name;
  void (*run)(int effort);  // 1: some seconds under a sanitizer
};
const std::vector<Scenario>& scenarios();
struct Register {
  explicit Register(Scenario s);
};
#define DVM_SCENARIO(name)                                           \
  static void name(int effort);                                      \
  static const ::dvm::test::Register register_##name({#name, name}); \
  static void name([[maybe_unused]] int effort)

// Ends the program with the place and message if it does not hold.
void check_that(bool ok, const char* file, int line, const std::string& what);
#define CHECK(condition, what) ::dvm::test::check_that(condition, __FILE__, __LINE__, what)

struct Random {
  explicit Random(uint64_t seed) : state(seed * 0x9e3779b97f4a7c15ull + 1) {}
  uint64_t state;
  uint64_t next() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * 0x2545f4914f6cdd1dull;
  }
  int64_t below(int64_t n) { return static_cast<int64_t>((next() >> 11) % static_cast<uint64_t>(n)); }
  bool chance(double p) { return static_cast<double>(next() >> 11) < p * 9007199254740992.0; }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[static_cast<size_t>(below(static_cast<int64_t>(from.size())))];
  }
};

// Recording, flushing and finishing are done with it, running without, as under Python.
std::mutex& gil();

}  // namespace dvm::test
