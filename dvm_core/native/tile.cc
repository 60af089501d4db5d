#include "tile.h"

#include <algorithm>
#include <cstdlib>

#include "kernels.h"

namespace dvm {
namespace {

// Operands from memory, results and some temporaries of a tile stay in the first-level cache.
constexpr int64_t kTileBytes = 32768, kLargestTile = 2048, kTemporaries = 3;
constexpr int64_t kSmallestTile = 1024;
// Gradients of normalisations, which read two operands or more, beyond what the second-level cache holds: memory is read ahead better in longer
// runs, and a dozen instructions take less for each element. Many cores still find a tile each.
constexpr int64_t kManyStreams = 8, kBeyondCaches = int64_t{1} << 20, kStreamTile = 8192, kManyCores = 64;
constexpr int64_t kTilesForBalance = 8;
constexpr int64_t kSlackLeast = 64;          // rows or columns that a layout has room for at least
constexpr int64_t kTransposeSide = 64;       // an operand read across its rows is copied in squares
// Products: rows of a tile come in groups of the register tile (14 with AVX-512), columns in panels of 32 that B is packed in; both small enough for
// the second-level cache, and a few tiles for every core.
constexpr int64_t kCubeGroup = 14, kCubePanel = 32, kCubeRows = 168, kCubeCols = 512, kCubeElements = 98 * 512, kCubeUnits = 12;
constexpr int64_t kElementsOfB = 1 << 17;    // columns of B that a tile reads stay in the second-level cache
// Convolutions: columns of a tile are packed at once, its results stay in the second-level cache; a few tiles even of one small image.
constexpr int64_t kWindowCols = 256, kWindowElements = 256 * 256, kLeastUnits = 4;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t unit) { return ceil_div(a, unit) * unit; }

// Tiles of a product or convolution whose size is given.
void product_tiles_of(int64_t elements, const Area& area, Geometry* g) {
  if (!area.rows_whole) g->tile_cols = std::min(g->cols, round_up(elements, kCubePanel));
  g->tile_rows = std::clamp<int64_t>(elements / g->tile_cols, 1, g->rows);
}

}  // namespace

TileSpace::TileSpace(const Area& area) : axes_(area.bounds.count) {
  externals.reserve(std::min<size_t>(8, 2 * area.instrs.size() + 1));
  int64_t before = 1;
  for (int k = 0; k < axes_; ++k) {
    extent_[k] = area.bounds.at[k] / before;
    before = area.bounds.at[k];
  }
}

int TileSpace::add(const External& base, const Dims& shape, const Dims& strides, int64_t scale) {
  External e = base;
  int k = 0;
  int64_t covered = 1;  // elements inside axis k
  while (covered < scale) covered *= extent_[k++];
  for (int a = shape.rank - 1; a >= 0; --a) {
    if (shape[a] == 1) continue;
    const int64_t inside = covered;
    while (covered < inside * shape[a]) {
      e.stride[k] = strides[a] * (covered / inside);
      covered *= extent_[k++];
    }
  }
  for (size_t i = 0; i < externals.size(); ++i) {
    const External& o = externals[i];
    if (o.root == e.root && o.immediate == e.immediate && o.offset == e.offset && o.dtype == e.dtype && std::equal(e.stride, e.stride + axes_, o.stride))
      return static_cast<int>(i);
  }
  externals.push_back(e);
  return static_cast<int>(externals.size()) - 1;
}

// Joins neighbouring axes that every operand walks as one; an axis never crosses `boundary` elements.
void TileSpace::fold(int64_t boundary) {
  int out = 0;
  int64_t covered = axes_ ? extent_[0] : 1;
  for (int k = 1; k < axes_; ++k) {
    bool one = covered != boundary;
    for (const External& e : externals) one = one && e.stride[k] == e.stride[out] * extent_[out];
    if (one) {
      extent_[out] *= extent_[k];
    } else {
      ++out;
      extent_[out] = extent_[k];
      for (External& e : externals) e.stride[out] = e.stride[k];
    }
    covered *= extent_[k];
  }
  axes_ = axes_ ? out + 1 : 0;
}

int TileSpace::axes_below(int64_t cols) const {
  int k = 0;
  for (int64_t covered = 1; covered < cols; ++k) covered *= extent_[k];
  return k;
}

void TileSpace::classify(External* e, int column_axes) const {
  bool rows = false, cols = false, row_run = true, col_run = true;
  int64_t step = 1;
  for (int k = 0; k < column_axes; ++k) {
    cols = cols || e->stride[k] != 0;
    col_run = col_run && e->stride[k] == step;
    step *= extent_[k];
  }
  const int64_t width = step;
  for (int k = column_axes; k < axes_; ++k) {
    rows = rows || e->stride[k] != 0;
    row_run = row_run && e->stride[k] == (cols ? step : step / width);
    step *= extent_[k];
  }
  e->span = rows ? (cols || width == 1 ? Span::kFull : Span::kRow) : cols ? Span::kCols : Span::kOne;
  e->contiguous = (!rows || row_run) && (!cols || col_run);
  // One row only: a run of it is the whole.
  if (e->span == Span::kCols && column_axes == axes_) e->span = Span::kFull;
}

// What it costs to read the operands if the innermost `column_axes` axes are the columns.
int64_t TileSpace::cost_of(int column_axes) const {
  int64_t cost = 0;
  for (External e : externals) {
    classify(&e, column_axes);
    if (!e.contiguous) cost += column_axes > 1 ? 15 : 10;
    else if (e.span == Span::kRow || e.span == Span::kCols) cost += 1;
  }
  return cost;
}

void TileSpace::choose_columns() {
  int best = axes_;
  int64_t best_cost = cost_of(axes_);
  for (int k = axes_ - 1; k >= 1; --k)
    if (const int64_t cost = cost_of(k); cost < best_cost) {
      best = k;
      best_cost = cost;
    }
  geometry.cols = 1;
  for (int k = 0; k < best; ++k) geometry.cols *= extent_[k];
}

// Whether an operand's neighbouring elements lie along the rows (a transposed matrix).
bool TileSpace::crosses_rows() const {
  const int column_axes = axes_below(geometry.cols);
  if (column_axes == 0 || column_axes == axes_) return false;
  return std::any_of(externals.begin(), externals.end(), [&](const External& e) {
    return e.span == Span::kFull && !e.contiguous && std::abs(e.stride[0]) > std::abs(e.stride[column_axes]) && e.stride[column_axes] != 0;
  });
}

void TileSpace::vector_tiles(const Area& area, int64_t tile_elements) {
  Geometry& g = geometry;
  const bool automatic = tile_elements == 0;
  int64_t element_bytes = 0, item = 1;
  for (const External& e : externals) {
    item = std::max<int64_t>(item, item_size(e.dtype));
    if (e.span == Span::kFull) element_bytes += item_size(e.dtype);
  }
  const bool streams = area.rows_whole && element_bytes >= kManyStreams && element_bytes * area.elements >= kBeyondCaches;
  const int64_t cached = std::clamp(kTileBytes / (element_bytes + kTemporaries * item), kSmallestTile, kLargestTile);
  const int64_t most = streams ? std::clamp(area.elements / kManyCores, cached, kStreamTile) : cached;
  const int64_t wanted = automatic ? std::clamp(area.elements / kTilesForBalance, kSmallestTile, most) : tile_elements;
  if (area.row_joins) {
    g.tile_cols = std::min(g.cols, std::max<int64_t>(1, wanted / kReduceBlock) * kReduceBlock);
  } else if (area.rows_whole || g.cols <= wanted) {
    g.tile_cols = g.cols;
    g.tile_rows = std::clamp<int64_t>((wanted + g.cols / 2) / g.cols, 1, g.rows);
  } else {
    g.tile_cols = automatic ? std::min(g.cols, round_up(ceil_div(g.cols, ceil_div(g.cols, wanted)), 64)) : wanted;
  }
  if (automatic && !area.rows_whole && !area.row_joins && g.tile_rows < kTransposeSide && crosses_rows()) {
    g.tile_rows = std::min(g.rows, kTransposeSide);
    g.tile_cols = std::min(g.cols, kTransposeSide);
  }
}

void TileSpace::cube_tiles(const Area& area, const Product& p, int64_t tile_elements) {
  Geometry& g = geometry;
  g.chunk_outer = true;
  g.tile_cols = g.cols;
  if (tile_elements) return product_tiles_of(tile_elements, area, &g);
  const bool one_block = g.rows <= kCubeRows;  // one tile of rows: each column of B is used once, and the units are columns
  if (!area.rows_whole) {
    const int64_t widest = std::max(kCubeCols, kElementsOfB / std::max<int64_t>(p.k, 1));
    g.tile_cols = std::min(g.cols, round_up(ceil_div(g.cols, std::max<int64_t>(1, ceil_div(g.cols, widest))), kCubePanel));
    if (one_block && p.batches == 1) {
      // The fewer rows, the wider the register tile.
      const int64_t least = kCubePanel * (g.rows == 1 ? 8 : g.rows <= 3 ? 4 : 2);
      g.tile_cols = std::min(g.tile_cols, std::max(least, round_up(ceil_div(g.cols, kCubeUnits), least)));
    }
  }
  g.tile_rows = std::clamp(kCubeElements / g.tile_cols, kCubeGroup, kCubeRows);
  const int64_t chunks = ceil_div(g.cols, g.tile_cols);
  if (one_block && chunks > 1) {
    g.tile_rows = g.rows;
  } else if (p.batches > 1 && p.m <= kCubeRows) {  // whole matrices
    const int64_t matrices = std::clamp(p.batches / kCubeUnits, int64_t{1}, std::max<int64_t>(1, g.tile_rows / p.m));
    g.tile_rows = matrices * p.m;
  } else {
    const int64_t blocks = std::max(ceil_div(g.rows, g.tile_rows), std::min(ceil_div(kCubeUnits, chunks), ceil_div(g.rows, 4 * kCubeGroup)));
    g.tile_rows = round_up(ceil_div(g.rows, blocks), kCubeGroup);
  }
  g.tile_rows = std::min(g.tile_rows, g.rows);
}

// Whole rows of outputs where they are short: as many as waste least of the vectors, whose rows have the planes' pitch.
int64_t window_columns(const Convolution& v) {
  const WindowAxis& x = v.window.x;
  const int64_t shift = (x.taps - 1) * x.dilation / x.stride, pitch = x.out + shift;
  if (v.weight || x.out > kWindowCols || shift > kWindowCols) return kWindowCols;
  int64_t best = 1;
  double best_share = 0;
  for (int64_t rows = std::max<int64_t>(1, kWindowCols * 3 / 4 / x.out); rows <= std::max<int64_t>(1, kWindowCols * 5 / 4 / x.out); ++rows)
    if (const double share = static_cast<double>(rows * x.out) / static_cast<double>(round_up(rows * pitch - shift, 16)); share > best_share) {
      best = rows;
      best_share = share;
    }
  return best * x.out;
}

// Every tile makes its own part of the window matrix: as many rows as one block serves, split where that makes too few tiles.
void TileSpace::convolution_tiles(const Area& area, const Convolution& v, int64_t tile_elements) {
  Geometry& g = geometry;
  g.chunk_outer = true;
  g.tile_cols = g.cols;
  if (tile_elements) return product_tiles_of(tile_elements, area, &g);
  if (!area.rows_whole) g.tile_cols = std::min(g.cols, window_columns(v));
  const int64_t chunks = ceil_div(g.cols, g.tile_cols), most = std::max(kCubeGroup, (area.rows_whole ? 8 : 1) * kWindowElements / g.tile_cols);
  if (v.m <= most / 2 && v.batches * chunks >= kLeastUnits) {  // small matrices: several of them
    const int64_t matrices = std::clamp(v.batches * chunks / kCubeUnits, int64_t{1}, std::max<int64_t>(1, most / v.m));
    g.tile_rows = matrices * v.m;
  } else {
    const int64_t parts = std::max(ceil_div(v.m, most), std::min(ceil_div(kLeastUnits, v.batches * chunks), ceil_div(v.m, 2 * kCubeGroup)));
    g.tile_rows = ceil_div(v.m, parts);
  }
  g.tile_rows = std::min(g.tile_rows, g.rows);
}

void TileSpace::begin(const Area& area) {
  Geometry& g = geometry;
  fold(area.cols);
  if (area.cols) g.cols = area.cols;
  else choose_columns();
  g.rows = area.elements / g.cols;
  g.group_rows = area.block_axis ? area.block_axis : g.rows;
  const int column_axes = axes_below(g.cols);
  for (External& e : externals) classify(&e, column_axes);
}

void TileSpace::end(const Area& area) {
  Geometry& g = geometry;
  g.tile_rows = std::min(g.tile_rows, g.group_rows);
  g.block_rows = g.tile_rows;
  if (area.block_axis) {
    g.block_rows = std::min(kRowBlock, g.group_rows);
    g.tile_rows = std::min(g.tile_rows, g.block_rows);
  }
  g.groups = g.rows / g.group_rows;
  g.blocks = ceil_div(g.group_rows, g.block_rows);
  g.chunks = ceil_div(g.cols, g.tile_cols);
}

void TileSpace::finish(const Area& area, const Product* product, int64_t tile_elements) {
  begin(area);
  if (product) cube_tiles(area, *product, tile_elements);
  else vector_tiles(area, tile_elements);
  end(area);
}

void TileSpace::finish(const Area& area, const Convolution& convolution, int64_t tile_elements) {
  begin(area);
  convolution_tiles(area, convolution, tile_elements);
  end(area);
}

void TileSpace::describe(const External& e, bool bound, GlobalSlot* slot, std::vector<ViewAxis>* axes) const {
  const int64_t item = item_size(e.dtype);
  slot->dtype = e.dtype;
  slot->offset = e.offset * item;
  slot->bound = bound;
  const int column_axes = axes_below(geometry.cols);
  if (bound) {
    slot->col_step = e.span == Span::kFull || e.span == Span::kCols ? item : 0;
    slot->row_step = e.span == Span::kRow ? item : e.span == Span::kFull && column_axes < axes_ ? geometry.cols * item : 0;
    return;
  }
  // Axes that this operand alone walks as one are joined once more, rows and columns apart.
  slot->first_axis = static_cast<int32_t>(axes->size());
  const auto append = [&](int from, int to) {
    const size_t first = axes->size();
    for (int k = to - 1; k >= from; --k) {
      const int64_t stride = e.stride[k] * item;
      if (axes->size() > first && axes->back().stride == stride * extent_[k]) {
        axes->back().extent *= extent_[k];
        axes->back().stride = stride;
      } else {
        axes->push_back({extent_[k], stride});
      }
    }
    return static_cast<int32_t>(axes->size() - first);
  };
  slot->row_axes = append(column_axes, axes_);
  slot->col_axes = e.span == Span::kRow ? 0 : append(0, column_axes);
}

TileRoom room_of(const Geometry& g) { return {g.tile_rows * g.tile_cols, g.tile_rows, g.tile_cols}; }

TileRoom with_slack(const TileRoom& room) {
  const auto more = [](int64_t n, int64_t least) { return std::max(n + n / 8, least); };
  return {more(room.full, kSmallestTile), more(room.rows, kSlackLeast), more(room.cols, kSlackLeast)};
}

int64_t register_bytes(const Register& r, const TileRoom& room) {
  const int64_t n = r.span == Span::kFull ? room.full : r.span == Span::kRow ? room.rows : r.span == Span::kCols ? room.cols : 1;
  return (n * item_size(r.dtype) + 127) / 128 * 128;
}

int64_t allocate_ub(const std::vector<TileOp>& prologue, const std::vector<TileOp>& ops, std::vector<Register>* registers, const TileRoom& room) {
  std::vector<Register>& regs = *registers;
  std::vector<int> last(regs.size(), -1);
  const auto each_operand = [](const TileOp& op, auto&& f) {
    for (int32_t r : {op.a, op.b, op.c})
      if (r >= 0) f(r);
  };
  for (size_t i = 0; i < ops.size(); ++i) each_operand(ops[i], [&](int32_t r) { last[r] = static_cast<int>(i); });

  // What a strip reads or writes lives to the strip's end: its instructions run in turn for every block.
  std::vector<size_t> together(ops.size());
  for (size_t i = 0, end = 0; i < ops.size(); ++i) {
    end = std::max(end, i + static_cast<size_t>(ops[i].behind));
    together[i] = end;
  }
  const auto in_ub = [](const Register& r) { return r.slot < 0 && !r.in_strip; };
  const auto bytes_of = [&](const Register& r) { return register_bytes(r, room); };
  std::vector<bool> released(regs.size());
  struct Free {
    int64_t address, bytes;
    int32_t reg;
  };
  std::vector<Free> free, free_later;
  int64_t top = 0;
  const auto take = [&](Register& r) {
    const int64_t bytes = bytes_of(r);
    int best = -1;
    for (size_t f = 0; f < free.size(); ++f)
      if (free[f].bytes >= bytes && (best < 0 || free[f].bytes < free[best].bytes)) best = static_cast<int>(f);
    if (best < 0) {
      r.address = top;
      top += bytes;
      return;
    }
    r.address = free[best].address;
    free[best].address += bytes;
    free[best].bytes -= bytes;
    if (!free[best].bytes) free.erase(free.begin() + best);
  };

  for (const TileOp& op : prologue)
    if (op.dst >= 0 && in_ub(regs[op.dst])) take(regs[op.dst]);
  for (const TileOp& op : ops)
    if (op.dst >= 0 && in_ub(regs[op.dst]) && regs[op.dst].pinned && regs[op.dst].address < 0) take(regs[op.dst]);
  for (size_t i = 0; i < ops.size(); ++i) {
    const TileOp& op = ops[i];
    const auto dies = [&](int32_t r) { return in_ub(regs[r]) && !regs[r].pinned && last[r] == static_cast<int>(i); };
    int32_t taken = -1;
    if (op.dst >= 0 && in_ub(regs[op.dst]) && !regs[op.dst].pinned) {
      Register& d = regs[op.dst];
      const bool elementwise = op.id < Tile::kSumX || (op.id >= Tile::kBitAnd && op.id <= Tile::kShiftRight);
      if (elementwise)
        each_operand(op, [&](int32_t r) {
          if (taken < 0 && dies(r) && regs[r].span == d.span && item_size(regs[r].dtype) == item_size(d.dtype)) taken = r;
        });
      // In a strip also that of an operand of an earlier instruction: each block of it has been read when it is written.
      const auto alike = [&](const Free& f) { return elementwise && regs[f.reg].span == d.span && item_size(regs[f.reg].dtype) == item_size(d.dtype); };
      if (taken >= 0) {
        d.address = regs[taken].address;
      } else if (const auto dead = std::ranges::find_if(free_later, alike); dead != free_later.end()) {
        d.address = dead->address;
        free_later.erase(dead);
      } else {
        take(d);
      }
    }
    each_operand(op, [&](int32_t r) {
      if (r == taken || released[r] || !dies(r)) return;
      released[r] = true;
      free_later.push_back({regs[r].address, bytes_of(regs[r]), r});
    });
    // A result nobody reads (a hook's operand dies here too) gives its place back at once.
    if (op.dst >= 0 && in_ub(regs[op.dst]) && !regs[op.dst].pinned && last[op.dst] < static_cast<int>(i))
      free_later.push_back({regs[op.dst].address, bytes_of(regs[op.dst]), op.dst});
    if (together[i] > i) continue;
    free.insert(free.end(), free_later.begin(), free_later.end());
    free_later.clear();
  }
  return top;
}

}  // namespace dvm
