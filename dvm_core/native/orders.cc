#include "orders.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <mutex>

#include "elements.h"
#include "join.h"
#include "kernels.h"
#include "profile.h"
#include "splitmix.h"

namespace dvm {
namespace {

constexpr size_t kMostSpreads = 1000;

std::atomic<bool> deterministic{true};
std::atomic<int> orders_to_try{0};
std::atomic<uint64_t> launches{0};
std::mutex mutex;
std::vector<Spread> spreads;

// The cores' runs of parts, dealt into each other at random.
std::vector<int64_t> arrival(uint64_t seed, int64_t parts, int64_t cores) {
  cores = std::min(cores, parts);
  std::vector<int64_t> turn(static_cast<size_t>(parts)), next(static_cast<size_t>(cores)), order(static_cast<size_t>(parts));
  for (int64_t p = 0; p < parts; ++p) turn[static_cast<size_t>(p)] = p * cores / parts;
  for (int64_t c = cores; c-- > 0;) next[static_cast<size_t>(c)] = (c * parts + cores - 1) / cores;
  for (int64_t p = parts - 1; p > 0; --p) std::swap(turn[static_cast<size_t>(p)], turn[splitmix(&seed) % static_cast<uint64_t>(p + 1)]);
  for (int64_t p = 0; p < parts; ++p) order[static_cast<size_t>(p)] = next[static_cast<size_t>(turn[static_cast<size_t>(p)])]++;
  return order;
}

bool has_orders(const Run& run, const Join& j) {
  return run.area.profile && run.area.profile->simulated && j.op == Op::kSUM && j.parts > 1 && (j.dtype == DType::kF32 || j.dtype == DType::kF64);
}

}  // namespace

void set_deterministic(bool enabled) { deterministic.store(enabled); }
void set_sum_orders(int orders) { orders_to_try.store(orders); }

std::vector<Spread> take_spreads() {
  std::lock_guard lock(mutex);
  return std::exchange(spreads, {});
}

std::vector<int64_t> order_of_arrival(const Run& run, const Join& j) {
  if (deterministic.load(std::memory_order_relaxed) || !has_orders(run, j) || !run.area.profile->faithful) return {};
  return arrival(launches.fetch_add(1) + 1, j.parts, run.area.profile->vector_cores);
}

void add_in_order(const Run& run, const Join& j, const std::vector<int64_t>& order, int64_t outer, int64_t col, int64_t cols, uint8_t* sum) {
  const int item = item_size(j.dtype);
  const auto part = [&](int64_t p) { return partials(run, j) + ((outer * j.parts + p) * j.width + col) * item; };
  std::memcpy(sum, part(order[0]), static_cast<size_t>(cols * item));
  for (size_t k = 1; k < order.size(); ++k) run.k.reduce_col[int(j.op)][int(j.dtype)](sum, part(order[k]), 1, cols);
}

void try_orders(const Run& run, const Join& j) {
  const int orders = orders_to_try.load(std::memory_order_relaxed);
  if (orders < 2 || !has_orders(run, j)) return;
  const auto width = static_cast<size_t>(j.width);
  std::vector<uint8_t> sum(width * static_cast<size_t>(item_size(j.dtype))), rounded(width * static_cast<size_t>(item_size(j.out)));
  std::vector<double> value(width), lowest(width), highest(width);
  const Instr& in = run.io.code->instrs[static_cast<size_t>(run.io.code->instr_of(run.area.slots[static_cast<size_t>(j.result)].value))];
  Spread s{in.op, in.dtype, in.shape, in.place, j.parts, j.outer * j.width, 0, orders, 0, 0, 0};
  for (int64_t outer = 0; outer < j.outer; ++outer) {
    for (int o = 0; o < orders; ++o) {
      add_in_order(run, j, arrival(static_cast<uint64_t>(o) + 1, j.parts, run.area.profile->vector_cores), outer, 0, j.width, sum.data());
      finish_sum(run, j, sum.data(), rounded.data(), j.width);
      run.k.cast[int(j.out)][int(DType::kF64)](value.data(), rounded.data(), j.width);
      for (size_t c = 0; c < width; ++c) {
        lowest[c] = o ? std::fmin(lowest[c], value[c]) : value[c];
        highest[c] = o ? std::fmax(highest[c], value[c]) : value[c];
      }
    }
    for (size_t c = 0; c < width; ++c) {
      if (!(highest[c] > lowest[c])) continue;
      ++s.differing;
      if (highest[c] - lowest[c] <= s.highest - s.lowest) continue;
      s.worst = outer * j.width + static_cast<int64_t>(c);
      s.lowest = lowest[c];
      s.highest = highest[c];
    }
  }
  std::lock_guard lock(mutex);
  if (spreads.size() < kMostSpreads) spreads.push_back(s);
}

}  // namespace dvm
