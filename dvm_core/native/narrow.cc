// Why no bit changes. Behind the SELECT that applies the mask, a hidden column holds what every hidden column of its row holds: the fill value,
// and what elementwise instructions with values of the row make of it. One hidden column stays in the tile, so maxima and minima are complete.
// In a sum, and as a factor of finite numbers in a product, the hidden columns add zeros: x + 0 is x, but for a -0 (settle_zeros). Where they
// are not zeros (a row that sees nothing) the tile is computed whole (do_tail).
#include "narrow.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "encoder.h"
#include "interp.h"
#include "optable.h"
#include "pool.h"
#include "product.h"

namespace dvm {
namespace {

constexpr int64_t kFewestColumns = kReduceWide;
constexpr int64_t kStep = 32;            // columns a tile shrinks by: a panel of the product

// The columns to keep so that `least` are there and a row of `all` is still added in the same lanes.
int64_t shrunk(int64_t least, int64_t all) {
  const int64_t cols = (least + kStep - 1) / kStep * kStep, block = cols / kReduceBlock * kReduceBlock;
  const int64_t in_block = cols - block;
  if (in_block > 0 && in_block < kReduceWide && all - block >= kReduceWide) return block + kReduceWide;
  return cols;
}

enum class Column : uint8_t { kOther, kRaw, kMasked, kOfRow };  // what a value is: before the mask, behind it, one per row

}  // namespace

// The mask, if the tiles of this area may shrink.
void Encoder::find_mask(const std::vector<size_t>& first_ref) {
  const Geometry& g = space_.geometry;
  if (in_.profile.simulated || out_.products.size() != 2 || !out_.convolutions.empty() || g.cols < kFewestColumns || g.tile_cols < g.cols) return;
  const Product &scores = out_.products[0], &values = out_.products[1];
  if (scores.chained() || !values.chained() || scores.from != DType::kF32 || values.b.col != 1 || g.tile_rows >= scores.m) return;
  std::vector<Column> column(area_.instrs.size(), Column::kOther);
  const auto column_of = [&](int instr) {
    return column[static_cast<size_t>(std::find(area_.instrs.begin(), area_.instrs.end(), instr) - area_.instrs.begin())];
  };
  int32_t mask = -1;
  bool hides = false;
  for (size_t n = 0; n < area_.instrs.size(); ++n) {
    const int i = area_.instrs[n];
    const Instr& in = code_.instrs[i];
    const char cls = op_info(in.op).cls;
    const Extent extent = in_.fusing.extent[i];
    const bool stored = in_.stored[code_.value_of(i)];
    const Ref* refs = refs_.data() + first_ref[n];
    if (hooked(i) || extent == Extent::kJoined) return;
    if (in.op == Op::kMATMUL) {
      if (extent == Extent::kChained && column_of(refs[0].instr) != Column::kMasked) return;
      if (extent != Extent::kChained && stored) return;
      column[n] = extent == Extent::kChained ? Column::kOther : Column::kRaw;
      continue;
    }
    bool raw = false, masked = false, wide = false;  // operands: in the tile before the mask, behind it, from memory with columns
    for (size_t k = 0; k < in.operands.size(); ++k) {
      if (refs[k].external >= 0) {
        const External& e = space_.externals[refs[k].external];
        if (e.span == Span::kCols) return;
        wide = wide || e.span == Span::kFull;
      } else {
        raw = raw || column_of(refs[k].instr) == Column::kRaw;
        masked = masked || column_of(refs[k].instr) == Column::kMasked;
      }
    }
    if (cls == 'R') {
      const bool known = in.op == Op::kSUM || in.op == Op::kMEAN || in.op == Op::kMAX || in.op == Op::kMIN;
      if (!known || !masked || in.dtype != DType::kF32 || extent != Extent::kRow || stored) return;
      column[n] = Column::kOfRow;
    } else if (extent == Extent::kRow) {
      if (raw || masked || stored) return;
      column[n] = Column::kOfRow;
    } else if (in.op == Op::kSELECT && raw) {
      const bool shows = refs[1].external < 0;  // the scores where the mask is true
      const Ref &fill = refs[shows ? 2 : 1], &kept = refs[shows ? 1 : 2];
      if (mask >= 0 || refs[0].external < 0 || fill.external < 0 || kept.external >= 0) return;
      if (space_.externals[refs[0].external].span != Span::kFull || space_.externals[fill.external].span != Span::kOne) return;
      mask = refs[0].external;
      hides = !shows;
      column[n] = Column::kMasked;
    } else if ((cls == 'U' || cls == 'B' || cls == 'T') && raw && !masked && !stored) {
      column[n] = Column::kRaw;
    } else if ((cls == 'U' || cls == 'B' || cls == 'T') && !raw && !wide) {
      column[n] = Column::kMasked;
    } else {
      return;
    }
  }
  if (mask < 0) return;
  out_.narrows = true;
  const int instr = area_.instrs[0];
  const int32_t probe = external(mask, instr);
  external_register_[mask] = -1;  // read again for the columns that are left
  emit({.id = Tile::kNarrow, .span = Span::kFull, .dtype = DType::kBool, .a = probe, .number = hides, .instr = instr});
}

void do_narrow(Core& c, const uint64_t* w) {
  if (c.whole || __atomic_load_n(&c.run.infinite, __ATOMIC_RELAXED)) return;
  const auto* mask = static_cast<const uint8_t*>(c.pointer(operand_a(w[1])));
  const bool hides = operand_b(w[1]) != 0;
  const uint64_t hidden = hides ? 0x0101010101010101u : 0;
  int64_t seen = 0;
  for (int64_t r = 0; r < c.rows; ++r) {
    const uint8_t* row = mask + r * c.cols;
    int64_t end = c.cols;
    for (uint64_t word; end - 8 >= seen; end -= 8) {
      std::memcpy(&word, row + end - 8, sizeof word);
      if (word != hidden) break;
    }
    while (end > seen && (row[end - 1] != 0) == hides) --end;
    seen = end;
  }
  const int64_t cols = shrunk(seen + 1, c.cols);
  if (cols >= c.cols) return;
  c.cols = cols;
  c.full = c.rows * cols;
}

void do_tail(Core& c, const uint64_t* w) {
  const int64_t all = c.run.area.space.cols;
  if (c.cols == all) return;
  const auto* last = static_cast<const float*>(c.pointer(operand_a(w[1]))) + c.cols - 1;
  bool zeros = true;
  for (int64_t r = 0; r < c.rows; ++r) zeros = zeros && last[r * c.cols] == 0;
  if (zeros) return;
  c.whole = true;
  c.cols = all;
  c.full = c.rows * all;
  for (const uint64_t* at = c.run.area.code; at != w; at += head_len(*at)) step(c, at);
}

void check_finite(const Run& run, const Product& p) {
  constexpr int64_t kRows = 128;
  const CheckOf check = run.k.check[int(DType::kF32)];
  const int64_t pieces = (p.k + kRows - 1) / kRows;
  parallel_for(
      p.b.matrices * pieces,
      [&](int64_t unit, int) {
        const auto* b = reinterpret_cast<const float*>(matrix_of_b(run, p, unit / pieces));
        const int64_t first = unit % pieces * kRows, last = first + kRows < p.k ? first + kRows : p.k;
        for (int64_t k = first; k < last; ++k)
          if (check(b + k * p.b.row, p.n)) __atomic_store_n(&run.infinite, 1, __ATOMIC_RELAXED);
      },
      p.b.matrices * p.k * p.n / 8 + 1);
}

void settle_zeros(Core& c, const Product& p, const GemmArgs& narrow) {
  std::vector<float> row;
  for (int64_t r = 0; r < narrow.m; ++r) {
    float* to = narrow.c + r * narrow.ldc;
    uint32_t minus = 0;
    for (int64_t j = 0; j < narrow.n; ++j) {
      uint32_t bits;
      std::memcpy(&bits, to + j, sizeof bits);
      minus |= bits == 0x80000000u;
    }
    if (!minus) continue;
    const auto* seen = static_cast<const float*>(narrow.a) + r * narrow.a_row;
    row.assign(seen, seen + narrow.k);
    row.resize(static_cast<size_t>(p.k), seen[narrow.k - 1]);
    GemmArgs whole = narrow;
    whole.m = 1;
    whole.k = p.k;
    whole.a = row.data();
    whole.a_row = p.k;
    whole.c = to;
    c.run.k.gemm(whole);
  }
}

}  // namespace dvm
