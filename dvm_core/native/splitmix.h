// A fixed sequence of 64-bit numbers (SplitMix64), for what tests and simulated devices draw. Never for values of tensors.
#pragma once
#include <cstdint>

namespace dvm {

inline uint64_t splitmix(uint64_t* state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

}  // namespace dvm
