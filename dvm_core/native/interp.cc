#include "interp.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>

#include "encode.h"
#include "pool.h"

namespace dvm {
namespace {

constexpr int64_t kChunks = 24;          // pieces of an area a worker takes at once
constexpr double kShareFromNs = 8000;    // less work stays on the calling thread

struct alignas(16) Cell {
  uint8_t bytes[16];
};

// One run of one area, shared by its cores.
struct Run {
  const AreaCode& area;
  const Kernels& k;
  RunIO& io;
  void** base;               // by slot
  Stats* stats = nullptr;    // [hook][unit]
  int64_t units = 0;
};

// The state of one core at one tile.
struct Core {
  const Run& run;
  uint8_t* ub;
  void** at;                 // addresses by slot, at this tile
  int64_t row = 0, col = 0, rows = 0, cols = 0, full = 0;
  int64_t unit = 0, group = 0, block = 0;
  bool first_of_block = false;

  void* pointer(uint32_t operand) const { return operand & kGlobal ? at[operand & (kGlobal - 1)] : ub + int64_t(operand) * kUbUnit; }
  int64_t count(Span s) const { return s == Span::kFull ? full : s == Span::kRow ? rows : s == Span::kCols ? cols : 1; }
};

using Handler = void (*)(Core& c, const uint64_t* w);

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
  read_axes(static_cast<uint8_t*>(c.pointer(head_dst(*w))), static_cast<const uint8_t*>(c.run.base[number]), axes, s.row_axes, axes + s.row_axes, s.col_axes,
            c.row, c.rows, row_only ? 0 : c.col, row_only ? 1 : c.cols, item_size(s.dtype));
}

void do_store_view(Core& c, const uint64_t* w) {
  const int item = item_size(DType(head_dtype(*w)));
  c.run.k.copy_out(c.pointer(head_dst(*w)), c.pointer(operand_a(w[1])), c.rows, c.cols, c.run.area.space.cols * item, item, item);
}

uint8_t* partials(const Run& run, const Join& j) {
  return j.direct ? static_cast<uint8_t*>(run.base[j.result]) : static_cast<uint8_t*>(run.io.workspace) + j.scratch;
}

void do_join_x(Core& c, const uint64_t* w) {
  constexpr int64_t kBlock = 4096;
  const Join& j = c.run.area.joins[operand_b(w[1])];
  const int item = item_size(j.dtype);
  const auto* src = static_cast<const uint8_t*>(c.pointer(operand_a(w[1])));
  const ReduceRow reduce = c.run.k.reduce_row[int(j.op)][int(j.dtype)];
  for (int64_t r = 0; r < c.rows; ++r) {
    uint8_t* out = partials(c.run, j) + ((c.row + r) * j.parts + c.col / kBlock) * item;
    const int64_t blocks = c.cols / kBlock, rest = c.cols % kBlock;
    if (blocks) reduce(out, src + r * c.cols * item, blocks, kBlock);
    if (rest) reduce(out + blocks * item, src + (r * c.cols + blocks * kBlock) * item, 1, rest);
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

// Matrix number `number` of B: its first element and strides.
const float* matrix_of_b(const Run& run, const Product& p, int64_t number, int64_t* row_stride, int64_t* col_stride) {
  if (p.b.scratch >= 0) {
    *row_stride = p.n;
    *col_stride = 1;
    return reinterpret_cast<const float*>(static_cast<uint8_t*>(run.io.workspace) + p.b.scratch) + number * p.k * p.n;
  }
  *row_stride = p.b.row;
  *col_stride = p.b.col;
  const auto* from = static_cast<const float*>(run.base[p.b.slot]);
  for (auto axis = p.axes.rbegin(); axis != p.axes.rend(); ++axis) {
    if (!axis->b_matrix) continue;
    from += number % axis->extent * axis->b;
    number /= axis->extent;
  }
  return from;
}

// Rows of the product, batch after batch.
void do_matmul(Core& c, const uint64_t* w) {
  const Product& p = c.run.area.products[operand_a(w[1])];
  const int item = item_size(p.dtype);
  const bool in_memory = head_dst(*w) & kGlobal;
  const int64_t ldc = in_memory ? c.run.area.space.cols : c.cols;
  auto* dst = static_cast<uint8_t*>(c.pointer(head_dst(*w)));
  auto* workspace = static_cast<uint8_t*>(c.run.io.workspace);
  for (int64_t r = c.row; r < c.row + c.rows;) {
    int64_t batch = r / p.m, in_batch = r % p.m, a = 0, b = 0, a_matrix = 0, b_matrix = 0;
    const int64_t some = std::min(p.m - in_batch, c.row + c.rows - r);
    for (auto axis = p.axes.rbegin(); axis != p.axes.rend(); ++axis) {
      const int64_t digit = batch % axis->extent;
      batch /= axis->extent;
      a += digit * axis->a;
      b += digit * axis->b;
      a_matrix += digit * axis->a_matrix;
      b_matrix += digit * axis->b_matrix;
    }
    const auto* pa = static_cast<const uint8_t*>(c.run.base[p.a.slot]) + a * item;
    int64_t a_row = p.a.row, a_col = p.a.col;
    if (p.a.scratch >= 0) {
      pa = workspace + p.a.scratch + a_matrix * p.m * p.k * item;
      a_row = p.k;
      a_col = 1;
    }
    pa += in_batch * a_row * item;
    if (p.dtype == DType::kF32) {
      const float* packed;
      if (p.packed_ub >= 0) {
        auto* own = reinterpret_cast<float*>(c.ub + p.packed_ub);
        int64_t row_stride, col_stride;
        const float* from = matrix_of_b(c.run, p, b_matrix, &row_stride, &col_stride);
        c.run.k.pack_b(own, from + c.col * col_stride, row_stride, col_stride, p.k, c.cols);
        packed = own;
      } else {
        packed = reinterpret_cast<const float*>(workspace + p.packed + b_matrix * p.packed_stride) + c.col * p.k;
      }
      c.run.k.gemm({some, c.cols, p.k, reinterpret_cast<const float*>(pa), a_row, a_col, packed, reinterpret_cast<float*>(dst), ldc});
    } else {
      const auto* pb = static_cast<const uint8_t*>(c.run.base[p.b.slot]) + (b + c.col * p.b.col) * item;
      c.run.k.gemm_generic(dst, pa, pb, some, c.cols, p.k, a_row, a_col, p.b.row, p.b.col, ldc, p.dtype);
    }
    dst += some * ldc * item;
    r += some;
  }
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
    case Tile::kMinX: return do_reduce;
    case Tile::kLoadView: return do_load_view;
    case Tile::kStoreView: return do_store_view;
    case Tile::kBroadcastX: return do_broadcast_x;
    case Tile::kBroadcastY: return do_broadcast_y;
    case Tile::kBroadcastS: return do_broadcast_s;
    case Tile::kSumXJoin:
    case Tile::kMaxXJoin:
    case Tile::kMinXJoin: return do_join_x;
    case Tile::kSumY:
    case Tile::kMaxY:
    case Tile::kMinY: return do_join_y;
    case Tile::kHookStats: return do_hook_stats;
    case Tile::kHookCheck: return do_hook_check;
    default: return by_layout;
  }
}

constexpr auto kHandlers = [] {
  constexpr Handler unary = do_unary, binary = do_binary, select = do_select, matmul = do_matmul, join = nullptr, hook = nullptr;
  std::array<Handler, kTileIds> table{};
#define X(id, name, text, layout, meaning) table[id] = handler_of(static_cast<Tile>(id), layout);
  DVM_TILE_ISA(X)
#undef X
  return table;
}();

void dispatch(Core& c, const uint64_t* w) {
  for (uint64_t head = *w; head; head = *w) {
    kHandlers[head >> 48](c, w);
    w += head_len(head);
  }
}

// Units [from, to) on this thread.
void run_units(const Run& run, int64_t from, int64_t to) {
  const AreaCode& area = run.area;
  const Geometry& g = area.space;
  const size_t slots = area.slots.size();
  const int64_t ub_bytes = (area.ub_bytes + 127) / 128 * 128;
  auto* scratch = static_cast<uint8_t*>(thread_scratch(ub_bytes + static_cast<int64_t>(slots * sizeof(void*))));
  Core c{run, scratch, reinterpret_cast<void**>(scratch + ub_bytes)};
  std::copy(run.base, run.base + slots, c.at);
  const auto set_tile = [&](int64_t row, int64_t rows, int64_t col, int64_t cols) {
    c.row = row;
    c.rows = rows;
    c.col = col;
    c.cols = cols;
    c.full = rows * cols;
    for (size_t s = 0; s < slots; ++s) c.at[s] = static_cast<uint8_t*>(run.base[s]) + row * area.slots[s].row_step + col * area.slots[s].col_step;
  };
  if (*area.prologue) {
    set_tile(0, g.tile_rows, 0, g.tile_cols);
    dispatch(c, area.prologue);
  }
  const int64_t row_units = g.groups * g.blocks;
  for (int64_t unit = from; unit < to; ++unit) {
    const int64_t chunk = g.chunk_outer ? unit / row_units : unit % g.chunks, rest = g.chunk_outer ? unit % row_units : unit / g.chunks;
    c.unit = unit;
    c.group = rest / g.blocks;
    c.block = rest % g.blocks;
    const int64_t col = chunk * g.tile_cols, cols = std::min(g.tile_cols, g.cols - col);
    const int64_t first = c.group * g.group_rows + c.block * g.block_rows;
    const int64_t last = std::min(first + g.block_rows, (c.group + 1) * g.group_rows);
    for (int64_t row = first; row < last; row += g.tile_rows) {
      set_tile(row, std::min(g.tile_rows, last - row), col, cols);
      c.first_of_block = row == first;
      dispatch(c, area.code);
    }
  }
}

// ---- before and after the tiles ---------------------------------------------------------------------------------------------------

// Halves: one side of a product as contiguous float32 matrices of rows x cols.
void widen_side(const Run& run, const Product& p, const Product::Side& side, int64_t rows, int64_t cols, int64_t Product::BatchAxis::*stride,
                int64_t Product::BatchAxis::*matrix) {
  const DType from = run.area.slots[side.slot].dtype;
  const int item = item_size(from);
  auto* out = reinterpret_cast<float*>(static_cast<uint8_t*>(run.io.workspace) + side.scratch);
  const Unary cast = run.k.cast[int(from)][int(DType::kF32)];
  parallel_for(side.matrices * rows, [&](int64_t unit, int) {
    int64_t matrix_number = unit / rows, offset = unit % rows * side.row;
    for (auto axis = p.axes.rbegin(); axis != p.axes.rend(); ++axis) {
      if (!((*axis).*matrix)) continue;
      offset += matrix_number % axis->extent * ((*axis).*stride);
      matrix_number /= axis->extent;
    }
    const auto* src = static_cast<const uint8_t*>(run.base[side.slot]) + offset * item;
    if (side.col != 1) {
      void* line = thread_scratch(cols * item);
      run.k.copy_in(line, src, 1, cols, 0, side.col * item, item);
      src = static_cast<const uint8_t*>(line);
    }
    cast(out + unit * cols, src, cols);
  }, side.matrices * rows * cols / 4 + 1);
}

void pack_product(const Run& run, const Product& p) {
  if (p.a.scratch >= 0) widen_side(run, p, p.a, p.m, p.k, &Product::BatchAxis::a, &Product::BatchAxis::a_matrix);
  if (p.b.scratch >= 0) widen_side(run, p, p.b, p.k, p.n, &Product::BatchAxis::b, &Product::BatchAxis::b_matrix);
  if (p.packed < 0) return;
  constexpr int64_t kPanels = 4 * 32;  // columns packed by one unit
  const int64_t pieces = (p.n + kPanels - 1) / kPanels;
  parallel_for(p.b.matrices * pieces, [&](int64_t unit, int) {
    const int64_t matrix_number = unit / pieces, col = unit % pieces * kPanels;
    int64_t row_stride, col_stride;
    const float* src = matrix_of_b(run, p, matrix_number, &row_stride, &col_stride);
    auto* dst = reinterpret_cast<float*>(static_cast<uint8_t*>(run.io.workspace) + p.packed + matrix_number * p.packed_stride) + col * p.k;
    run.k.pack_b(dst, src + col * col_stride, row_stride, col_stride, p.k, std::min(kPanels, p.n - col));
  }, p.b.matrices * p.k * p.n / 4 + 1);
}

// Partial results joined in order, then divided (MEAN) and rounded to the result's dtype.
void finish_join(const Run& run, const Join& j) {
  constexpr int64_t kCols = 2048;
  const int item = item_size(j.dtype);
  const int64_t pieces = (j.width + kCols - 1) / kCols;
  Cell divisor;
  Imm count;
  count.f = static_cast<double>(j.divisor);
  count.i = j.divisor;
  count.is_int = true;
  if (j.divisor) write_scalar(divisor.bytes, j.dtype, count);
  const ReduceCol reduce = run.k.reduce_col[int(j.op)][int(j.dtype)];
  const auto join_piece = [&](int64_t unit, int) {
    const int64_t outer = unit / pieces, col = unit % pieces * kCols, cols = std::min(kCols, j.width - col);
    uint8_t* acc = partials(run, j) + (outer * j.parts * j.width + col) * item;
    if (j.width == 1)
      reduce(acc, acc + item, j.parts - 1, 1);
    else
      for (int64_t part = 1; part < j.parts; ++part) reduce(acc, acc + part * j.width * item, 1, cols);
    if (j.divisor) run.k.binary_vs[int(Op::kDIV)][int(j.dtype)](acc, acc, divisor.bytes, 1, cols);
    if (!j.direct) run.k.cast[int(j.dtype)][int(j.out)](static_cast<uint8_t*>(run.base[j.result]) + (outer * j.width + col) * item_size(j.out), acc, cols);
  };
  if (j.direct && !j.divisor) return;
  parallel_for(j.outer * pieces, join_piece, j.outer * j.parts * j.width / 4 + 1);
}

void finish_hooks(const Run& run) {
  for (size_t h = 0; h < run.area.hooks.size(); ++h) {
    const Hook& hook = run.area.hooks[h];
    const auto slot = static_cast<size_t>(hook.slot);
    if (hook.after >= 0) {
      if (hook.kind == kHookStats) {
        Stats s;
        run.k.stats[int(hook.dtype)](&s, run.base[hook.after], hook.elements);
        stats_merge(&(*run.io.stats)[slot], s);
      } else {
        (*run.io.checks)[slot] |= run.k.check[int(hook.dtype)](run.base[hook.after], hook.elements);
      }
    } else if (hook.kind == kHookStats) {
      for (int64_t u = 0; u < run.units; ++u) stats_merge(&(*run.io.stats)[slot], run.stats[static_cast<int64_t>(h) * run.units + u]);
    }
  }
}

void* slot_base(const AreaCode& area, const GlobalSlot& s, RunIO& io, Cell* cell) {
  switch (s.kind) {
    case GlobalSlot::kWorkspace: return static_cast<uint8_t*>(io.workspace) + s.offset;
    case GlobalSlot::kImmediate: write_scalar(cell->bytes, s.dtype, io.code->instrs[s.value].imms.at(0)); return cell->bytes;
    case GlobalSlot::kConstant: {
      Imm value;
      value.f = area.constants[s.value].value;
      value.i = static_cast<int64_t>(value.f);
      write_scalar(cell->bytes, s.dtype, value);
      return cell->bytes;
    }
    default: break;
  }
  auto* data = static_cast<uint8_t*>((*io.values)[s.value].data);
  return data ? data + s.offset : nullptr;
}

}  // namespace

void write_scalar(void* to, DType dtype, const Imm& value) {
  const Kernels& k = kernels();
  if (dtype == DType::kF64 || !value.is_int) {
    const double f = value.is_int ? static_cast<double>(value.i) : value.f;
    if (dtype == DType::kF64) {
      std::memcpy(to, &f, sizeof f);
      return;
    }
    if (dtype == DType::kF16 || dtype == DType::kBF16) {
      const float half = static_cast<float>(f);
      k.cast[int(DType::kF32)][int(dtype)](to, &half, 1);
      return;
    }
    k.cast[int(DType::kF64)][int(dtype)](to, &f, 1);
    return;
  }
  if (dtype == DType::kF16 || dtype == DType::kBF16) {
    const float half = static_cast<float>(value.i);
    k.cast[int(DType::kF32)][int(dtype)](to, &half, 1);
    return;
  }
  k.cast[int(DType::kI64)][int(dtype)](to, &value.i, 1);
}

void write_identity(void* to, DType dtype, Op op) {
  const auto put = [&]<class T>(T zero) {
    using L = std::numeric_limits<T>;
    T least = L::lowest(), greatest = L::max();
    if constexpr (L::has_infinity) {
      least = -L::infinity();
      greatest = L::infinity();
    }
    const T value = op == Op::kMAX ? least : op == Op::kMIN ? greatest : zero;
    std::memcpy(to, &value, sizeof value);
  };
  switch (dtype) {
    case DType::kF32: return put(0.0f);
    case DType::kF64: return put(0.0);
    case DType::kBool: return put(false);
    case DType::kI8: return put(int8_t{0});
    case DType::kU8: return put(uint8_t{0});
    case DType::kI32: return put(int32_t{0});
    case DType::kI64: return put(int64_t{0});
    default: {
      float value = op == Op::kMAX ? -std::numeric_limits<float>::infinity() : op == Op::kMIN ? std::numeric_limits<float>::infinity() : 0.0f;
      kernels().cast[int(DType::kF32)][int(dtype)](to, &value, 1);
    }
  }
}

void read_axes(uint8_t* dst, const uint8_t* src, const ViewAxis* row_axes, int row_rank, const ViewAxis* col_axes, int col_rank, int64_t row, int64_t rows,
               int64_t col, int64_t cols, int item) {
  const Kernels& k = kernels();
  const ViewAxis one{1, 0};
  const ViewAxis inner_row = row_rank ? row_axes[row_rank - 1] : one, inner_col = col_rank ? col_axes[col_rank - 1] : one;
  // The address of a row or column whose innermost digit is 0, and that digit.
  const auto locate = [](const ViewAxis* axes, int rank, int64_t index, int64_t* digit) {
    int64_t offset = 0;
    *digit = 0;
    if (!rank) return offset;
    *digit = index % axes[rank - 1].extent;
    index /= axes[rank - 1].extent;
    for (int a = rank - 2; a >= 0; --a) {
      offset += index % axes[a].extent * axes[a].stride;
      index /= axes[a].extent;
    }
    return offset;
  };
  for (int64_t r = row; r < row + rows;) {
    int64_t digit;
    const int64_t offset = locate(row_axes, row_rank, r, &digit);
    const uint8_t* from = src + offset + digit * inner_row.stride;
    int64_t some = row_rank ? std::min(inner_row.extent - digit, row + rows - r) : row + rows - r;
    if (col_rank <= 1) {
      k.copy_in(dst, from + col * inner_col.stride, some, cols, inner_row.stride, inner_col.stride, item);
      dst += some * cols * item;
    } else {
      some = 1;
      for (int64_t c = col; c < col + cols;) {
        int64_t col_digit;
        const int64_t col_offset = locate(col_axes, col_rank, c, &col_digit);
        int64_t run = std::min(inner_col.extent - col_digit, col + cols - c);
        const uint8_t* at = from + col_offset + col_digit * inner_col.stride;
        // Whole innermost runs go together, as the rows of one copy.
        const ViewAxis& above = col_axes[col_rank - 2];
        const int64_t position = c / inner_col.extent % above.extent;
        int64_t runs = 1;
        if (col_digit == 0 && run == inner_col.extent) runs = std::max<int64_t>(1, std::min(above.extent - position, (col + cols - c) / run));
        k.copy_in(dst, at, runs, run, above.stride, inner_col.stride, item);
        dst += runs * run * item;
        c += runs * run;
      }
    }
    r += some;
  }
}

void run_area(const AreaCode& area, RunIO& io) {
  constexpr size_t kInline = 40;
  const size_t slots = area.slots.size();
  std::array<void*, kInline> inline_base;
  std::array<Cell, kInline> inline_cells;
  std::unique_ptr<void*[]> more_base;
  std::unique_ptr<Cell[]> more_cells;
  void** base = inline_base.data();
  Cell* cells = inline_cells.data();
  if (slots > kInline) {
    more_base.reset(new void*[slots]);
    more_cells.reset(new Cell[slots]);
    base = more_base.get();
    cells = more_cells.get();
  }
  for (size_t s = 0; s < slots; ++s) base[s] = slot_base(area, area.slots[s], io, cells + s);
  Run run{area, kernels(), io, base, nullptr, 0};
  std::unique_ptr<Stats[]> stats;
  if (area.move >= 0) {
    run_move(area, *io.code, base);
  } else {
    run.units = area.space.units();
    for (const Hook& h : area.hooks)
      if (!stats && h.kind == kHookStats && h.after < 0) stats.reset(new Stats[area.hooks.size() * static_cast<size_t>(run.units)]);
    run.stats = stats.get();
    for (const Product& p : area.products) pack_product(run, p);
    if (run.units == 1 || area.cost_ns < kShareFromNs) {
      run_units(run, 0, run.units);
    } else {
      const int64_t pieces = std::min(run.units, kChunks);
      parallel_for(
          pieces, [&](int64_t piece, int) { run_units(run, run.units * piece / pieces, run.units * (piece + 1) / pieces); },
          static_cast<int64_t>(area.cost_ns));
    }
    for (const Join& j : area.joins) finish_join(run, j);
  }
  if (!area.hooks.empty()) finish_hooks(run);
}

}  // namespace dvm
