#include "interp.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "convolution.h"
#include "elements.h"
#include "join.h"
#include "memory.h"
#include "narrow.h"
#include "pool.h"
#include "product.h"
#include "strip.h"

namespace dvm {
namespace {

void do_unary(Core& c, const uint64_t* w) {
  c.run.k.unary[int(head_id(*w))][head_dtype(*w)](c.pointer(head_dst(*w)), c.pointer(operand_a(w[1])), c.count(head_span(*w)));
}

void do_cast(Core& c, const uint64_t* w) {
  c.run.k.cast[head_from(*w)][head_dtype(*w)](c.pointer(head_dst(*w)), c.pointer(operand_a(w[1])), c.count(head_span(*w)));
}

void do_binary(Core& c, const uint64_t* w) {
  const int op = int(head_id(*w)), d = head_dtype(*w);
  void* dst = c.pointer(head_dst(*w));
  const void *a = c.pointer(operand_a(w[1])), *b = c.pointer(operand_b(w[1]));
  const int64_t n = c.count(head_span(*w));
  switch (head_form(*w)) {
    case Form::kTT: return c.run.k.binary[op][d](dst, a, b, n);
    case Form::kTS: return c.run.k.binary_vs[op][d](dst, a, b, 1, n);
    case Form::kST: return c.run.k.binary_sv[op][d](dst, b, a, 1, n);
    case Form::kTX: return c.run.k.binary_vs[op][d](dst, a, b, c.rows, c.cols);
    case Form::kXT: return c.run.k.binary_sv[op][d](dst, b, a, c.rows, c.cols);
  }
}

void do_select(Core& c, const uint64_t* w) {
  c.run.k.select[head_dtype(*w)](c.pointer(head_dst(*w)), static_cast<const uint8_t*>(c.pointer(operand_a(w[1]))), c.pointer(operand_b(w[1])),
                                 c.pointer(operand_a(w[2])), c.count(head_span(*w)));
}

void do_reduce(Core& c, const uint64_t* w) {
  c.run.k.reduce_row[int(head_id(*w))][head_dtype(*w)](c.pointer(head_dst(*w)), c.pointer(operand_a(w[1])), c.rows, c.cols);
}

void do_broadcast_x(Core& c, const uint64_t* w) {
  const int item = item_size(DType(head_dtype(*w)));
  c.run.k.copy_in(c.pointer(head_dst(*w)), c.pointer(operand_a(w[1])), c.rows, c.cols, item, 0, item);
}

void do_broadcast_y(Core& c, const uint64_t* w) {
  const int item = item_size(DType(head_dtype(*w)));
  c.run.k.copy_in(c.pointer(head_dst(*w)), c.pointer(operand_a(w[1])), c.rows, c.cols, 0, item, item);
}

void do_broadcast_s(Core& c, const uint64_t* w) {
  c.run.k.fill(c.pointer(head_dst(*w)), c.pointer(operand_a(w[1])), c.count(head_span(*w)), item_size(DType(head_dtype(*w))));
}

void do_load_view(Core& c, const uint64_t* w) {
  const uint32_t number = operand_a(w[1]) & (kGlobal - 1);
  const GlobalSlot& s = c.run.area.slots[number];
  const ViewAxis* axes = c.run.area.axes.data() + s.first_axis;
  const bool row_only = head_span(*w) == Span::kRow;
  read_axes(static_cast<uint8_t*>(c.pointer(head_dst(*w))), static_cast<const uint8_t*>(c.run.base[number]), {axes, s.row_axes},
            {axes + s.row_axes, s.col_axes}, c.row, c.rows, row_only ? 0 : c.col, row_only ? 1 : c.cols, item_size(s.dtype));
}

// A run of memory to the UB, or back.
void do_copy_run(Core& c, const uint64_t* w) {
  const int64_t bytes = c.count(head_span(*w)) * item_size(DType(head_dtype(*w)));
  void* to = c.pointer(head_dst(*w));
  if (bytes) std::memcpy(to, c.pointer(operand_a(w[1])), static_cast<size_t>(bytes));
  if (c.run.coverage && head_id(*w) == Tile::kStore) c.run.coverage->mark(head_dst(*w) & (kGlobal - 1), to, 1, bytes, 0);
}

void do_store_view(Core& c, const uint64_t* w) {
  const int item = item_size(DType(head_dtype(*w)));
  const int64_t stride = c.run.area.space.cols * item;
  c.run.k.copy_out(c.pointer(head_dst(*w)), c.pointer(operand_a(w[1])), c.rows, c.cols, stride, item, item);
  if (c.run.area.narrows) {  // the last column tells what the hidden ones hold
    const auto* from = static_cast<const uint8_t*>(c.pointer(operand_a(w[1])));
    auto* to = static_cast<uint8_t*>(c.pointer(head_dst(*w)));
    for (int64_t r = 0; r < c.rows; ++r)
      c.run.k.fill(to + r * stride + c.cols * item, from + ((r + 1) * c.cols - 1) * item, c.run.area.space.cols - c.cols, item);
  }
  if (c.run.coverage) c.run.coverage->mark(head_dst(*w) & (kGlobal - 1), c.pointer(head_dst(*w)), c.rows, c.cols * item, stride);
}

void do_random(Core& c, const uint64_t* w) {
  const std::vector<Imm>& imms = c.run.io.code->instrs[operand_b(w[1])].imms;
  const Random draw = c.run.k.random[head_dtype(*w)];
  auto* dst = static_cast<uint8_t*>(c.pointer(head_dst(*w)));
  const auto seed = static_cast<uint64_t>(imms[0].i), offset = static_cast<uint64_t>(imms[1].i);
  const int64_t width = c.run.area.space.cols, first = c.row * width + c.col;
  if (c.cols == width) return draw(dst, seed, offset, first, c.full);
  for (int64_t r = 0; r < c.rows; ++r) draw(dst + r * c.cols * item_size(DType(head_dtype(*w))), seed, offset, first + r * width, c.cols);
}

void do_hook_stats(Core& c, const uint64_t* w) {
  const uint32_t hook = operand_b(w[1]);
  Stats s;
  c.run.k.stats[head_dtype(*w)](&s, c.pointer(operand_a(w[1])), c.count(head_span(*w)));
  stats_merge(&c.run.stats[hook * c.run.units + c.unit], s);
}

void do_hook_check(Core& c, const uint64_t* w) {
  const int found = c.run.k.check[head_dtype(*w)](c.pointer(operand_a(w[1])), c.count(head_span(*w)));
  if (found) __atomic_fetch_or(&(*c.run.io.checks)[static_cast<size_t>(c.run.area.hooks[operand_b(w[1])].slot)], found, __ATOMIC_RELAXED);
}

constexpr Handler handler_of(Tile id, Handler by_layout) {
  switch (id) {
    case Tile::kCast: return do_cast;
    case Tile::kSumX:
    case Tile::kMaxX:
    case Tile::kMinX:
    case Tile::kProdX: return do_reduce;
    case Tile::kLoadView: return do_load_view;
    case Tile::kStoreView: return do_store_view;
    case Tile::kNarrow: return do_narrow;
    case Tile::kTail: return do_tail;
    case Tile::kLoad:
    case Tile::kStore: return do_copy_run;
    case Tile::kBroadcastX: return do_broadcast_x;
    case Tile::kBroadcastY: return do_broadcast_y;
    case Tile::kBroadcastS: return do_broadcast_s;
    case Tile::kSumXJoin:
    case Tile::kMaxXJoin:
    case Tile::kMinXJoin:
    case Tile::kProdXJoin: return do_join_x;
    case Tile::kSumY:
    case Tile::kMaxY:
    case Tile::kMinY:
    case Tile::kProdY: return do_join_y;
    case Tile::kConv2D:
    case Tile::kConv2DWeight: return do_convolution;
    case Tile::kHookStats: return do_hook_stats;
    case Tile::kHookCheck: return do_hook_check;
    default: return by_layout;
  }
}

constexpr auto kHandlers = [] {
  constexpr Handler unary = do_unary, binary = do_binary, select = do_select, matmul = do_matmul, join = nullptr, hook = nullptr, random = do_random,
                    strip = do_strip;
  std::array<Handler, kTileIds> table{};
#define X(id, name, text, layout, meaning) table[id] = handler_of(static_cast<Tile>(id), layout);
  DVM_TILE_ISA(X)
#undef X
  return table;
}();

// To the next instruction to dispatch: those of a strip are done by its head.
int64_t words_of(const uint64_t* w) { return head_len(*w) + (head_id(*w) == Tile::kStrip ? 2 * int64_t(operand_a(w[1])) : 0); }

void dispatch(Core& c, const uint64_t* w) {
  for (uint64_t head = *w; head; head = *w) {
    kHandlers[head >> 48](c, w);
    w += words_of(w);
  }
}

void dispatch(Core& c, const uint64_t* w, Sample* sample) {
  const int64_t start = now_ns();
  for (uint64_t head = *w; head; head = *w) {
    const int64_t before = now_ns();
    kHandlers[head >> 48](c, w);
    sample->kernel_ns += now_ns() - before;
    ++sample->instructions;
    w += words_of(w);
  }
  sample->tile_ns += now_ns() - start;
  ++sample->tiles;
}

}  // namespace

void step(Core& c, const uint64_t* word) { kHandlers[*word >> 48](c, word); }

// Units [from, to) on this thread.
void run_units(const Run& run, int64_t from, int64_t to, Sample* sample) {
  const AreaCode& area = run.area;
  const Geometry& g = area.space;
  const size_t slots = area.slots.size();
  const int64_t ub_bytes = (area.ub_bytes + 127) / 128 * 128;
  auto* scratch = static_cast<uint8_t*>(thread_scratch(ub_bytes + static_cast<int64_t>(slots * sizeof(void*))));
  Core c{run, scratch, reinterpret_cast<void**>(scratch + ub_bytes)};
  std::copy(run.base, run.base + slots, c.at);
  // What the prologue made is still in this thread's UB if the piece it took before was of the same run; products may use more memory.
  thread_local uint64_t last_run = 0;
  const bool again = std::exchange(last_run, run.number) == run.number && !area.profile && area.products.empty() && area.convolutions.empty();
  if (*area.prologue && !again) {
    enter_tile(c, 0, g.tile_rows, 0, g.tile_cols);
    dispatch(c, area.prologue);
  }
  if (area.profile) return run_pipes(c, from, to);
  for (int64_t unit = from; unit < to; ++unit) {
    const UnitTiles t = enter_unit(c, unit);
    for (int64_t row = t.first; row < t.last; row += g.tile_rows) {
      enter_tile(c, row, std::min(g.tile_rows, t.last - row), t.col, t.cols);
      c.first_of_block = row == t.first;
      if (sample && sample->wanted()) dispatch(c, area.code, sample);
      else dispatch(c, area.code);
    }
  }
}

}  // namespace dvm
