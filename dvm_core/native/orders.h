// Sums of partial results in the order in which atomic additions would arrive: another one at every launch, as the hardware has it without
// set_deterministic. Simulated devices only; everywhere else, and there too unless asked for, partial results are added in order.
#pragma once
#include <cstdint>
#include <vector>

#include "core.h"

namespace dvm {

// Faithful devices take an order of arrival from now on (false), or the one fixed order (true, at first).
void set_deterministic(bool enabled);

// How many orders of each sum to try on simulated devices beside the one that counts, 0 at first; what came of it is kept until it is taken.
void set_sum_orders(int orders);

// One sum over several parts: how far its elements lie apart over the orders tried.
struct Spread {
  Op op;
  DType dtype;
  Dims shape;
  uint32_t place;
  int64_t parts, elements, differing;
  int orders;
  int64_t worst;          // element, by lowest and highest
  double lowest, highest;
};
std::vector<Spread> take_spreads();

// Which part comes when: parts are divided among the cores in runs, each core adds its own one after the other. Empty: in order.
std::vector<int64_t> order_of_arrival(const Run& run, const Join& join);

// Tries the orders there are to try. Before the parts are joined: they are only read.
void try_orders(const Run& run, const Join& join);

// The partial results [outer, part, columns] of one outer index, added up in an order.
void add_in_order(const Run& run, const Join& j, const std::vector<int64_t>& order, int64_t outer, int64_t col, int64_t cols, uint8_t* sum);

}  // namespace dvm
