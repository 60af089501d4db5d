#include "join.h"

#include <algorithm>

#include "elements.h"
#include "kernels.h"
#include "orders.h"
#include "pool.h"

namespace dvm {

uint8_t* partials(const Run& run, const Join& j) { return j.direct ? static_cast<uint8_t*>(run.base[j.result]) : run.workspace(j.scratch); }

void do_join_x(Core& c, const uint64_t* w) {
  const Join& j = c.run.area.joins[operand_b(w[1])];
  const int item = item_size(j.dtype);
  const auto* src = static_cast<const uint8_t*>(c.pointer(operand_a(w[1])));
  const ReduceRow reduce = c.run.k.reduce_row[int(j.op)][int(j.dtype)];
  for (int64_t r = 0; r < c.rows; ++r) {
    uint8_t* out = partials(c.run, j) + ((c.row + r) * j.parts + c.col / kReduceBlock) * item;
    const int64_t blocks = c.cols / kReduceBlock, rest = c.cols % kReduceBlock;
    if (blocks) reduce(out, src + r * c.cols * item, blocks, kReduceBlock);
    if (rest) reduce(out + blocks * item, src + (r * c.cols + blocks * kReduceBlock) * item, 1, rest);
  }
}

void do_join_y(Core& c, const uint64_t* w) {
  const Join& j = c.run.area.joins[operand_b(w[1])];
  const int item = item_size(j.dtype);
  uint8_t* acc = partials(c.run, j) + ((c.group * j.parts + c.block) * j.width + c.col) * item;
  if (c.first_of_block) {
    Cell identity;
    write_identity(identity.bytes, j.dtype, j.op);
    c.run.k.fill(acc, identity.bytes, c.cols, item);
  }
  c.run.k.reduce_col[int(j.op)][int(j.dtype)](acc, c.pointer(operand_a(w[1])), c.rows, c.cols);
}

void finish_sum(const Run& run, const Join& j, uint8_t* sum, uint8_t* to, int64_t cols) {
  if (j.divisor) {
    Cell divisor;
    Imm count;
    count.f = static_cast<double>(j.divisor);
    count.i = j.divisor;
    count.is_int = true;
    write_scalar(divisor.bytes, j.dtype, count);
    run.k.binary_vs[int(Op::kDIV)][int(j.dtype)](sum, sum, divisor.bytes, 1, cols);
  }
  if (to) run.k.cast[int(j.dtype)][int(j.out)](to, sum, cols);
}

void finish_join(const Run& run, const Join& j) {
  constexpr int64_t kCols = 2048;
  const int item = item_size(j.dtype);
  const int64_t pieces = (j.width + kCols - 1) / kCols;
  try_orders(run, j);
  const std::vector<int64_t> order = order_of_arrival(run, j);
  const ReduceCol reduce = run.k.reduce_col[int(j.op)][int(j.dtype)];
  const auto join_piece = [&](int64_t unit, int) {
    const int64_t outer = unit / pieces, col = unit % pieces * kCols, cols = std::min(kCols, j.width - col);
    uint8_t* acc = partials(run, j) + (outer * j.parts * j.width + col) * item;
    if (!order.empty()) {
      std::vector<uint8_t> sum(static_cast<size_t>(cols * item));
      add_in_order(run, j, order, outer, col, cols, sum.data());
      std::copy(sum.begin(), sum.end(), acc);
    } else if (j.width == 1) reduce(acc, acc + item, j.parts - 1, 1);
    else
      for (int64_t part = 1; part < j.parts; ++part) reduce(acc, acc + part * j.width * item, 1, cols);
    finish_sum(run, j, acc, j.direct ? nullptr : static_cast<uint8_t*>(run.base[j.result]) + (outer * j.width + col) * item_size(j.out), cols);
  };
  if (j.direct && !j.divisor) return;
  parallel_for(j.outer * pieces, join_piece, j.outer * j.parts * j.width / 4 + 1);
}

}  // namespace dvm
