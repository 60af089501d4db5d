// Greedy in program order. Areas run in the order of their creation, and an instruction may join any area that is not before the areas
// of its operands: then no path can leave an area and come back, whatever lies between in the program.
#include "fuse.h"

#include <algorithm>

#include "cuts.h"
#include "optable.h"

namespace dvm {
namespace {

constexpr int kLookBack = 12;            // areas an instruction may try to join

// A product of a tile's whole rows reads all of its B for every block of rows: B's columns are limited, and the bytes of both products' B
// where nothing else asks for whole rows.
constexpr int64_t kChainedColumns = 512, kChainedBytes = 1 << 20;

class Fuser {
 public:
  Fuser(const ProgramCode& code, int begin, int end, const std::vector<uint8_t>& keep, const std::vector<uint8_t>& hooked, const FuseLimits& limits)
      : code_(code), begin_(begin), end_(end), inputs_(static_cast<int>(code.inputs.size())), limits_(limits) {
    f_.resolved = resolve(code, begin, end, keep, needs_of(code, begin, end, keep, hooked), hooked);
    f_.area_of.assign(end, -1);
    f_.extent.assign(end, Extent::kFull);
    f_.folded_into.assign(end, -1);
  }

  Fusing run() {
    for (int i = begin_; i < end_; ++i) {
      switch (f_.resolved.work[i]) {
        case Work::kTile: place(i); break;
        case Work::kMatMul: place_matmul(i); break;
        case Work::kMove:
        case Work::kFill: open(i, AreaKind::kMove, Cut::kMove); break;
        case Work::kDead: f_.folded_into[i] = i; break;
        default: break;
      }
    }
    fold_views();
    for (Area& a : f_.areas)
      if (a.cut.empty())
        a.cut = limits_.unfused ? "each instruction runs alone" : a.kind == AreaKind::kMove ? "data movement runs alone" : "nothing more to fuse";
    return std::move(f_);
  }

 private:
  // The area that computes the memory behind an operand, -1 if it is in memory already.
  int producer_area(int32_t value) const {
    const int root = f_.resolved.access[value].root - inputs_;
    return root < begin_ ? -1 : f_.area_of[root];
  }

  int latest_producer(const Instr& in) const {
    int latest = -1;
    for (int32_t o : in.operands)
      if (o >= 0) latest = std::max(latest, producer_area(o));
    return latest;
  }

  void note_cut(int area, Cut cut, int i) {
    if (area >= 0 && f_.areas[area].cut.empty() && !limits_.unfused) f_.areas[area].cut = cut_words(cut, code_, f_.resolved, f_.areas[area], i);
  }

  void place(int i) {
    const Instr& in = code_.instrs[i];
    const int latest = latest_producer(in), count = static_cast<int>(f_.areas.size());
    if (!limits_.unfused) {
      if (latest >= 0) {
        const Cut cut = join(latest, i);
        if (cut == Cut::kNone) return;
        note_cut(latest, cut, i);
      }
      for (int a = count - 1; a > latest && a >= count - kLookBack; --a)
        if (join(a, i) == Cut::kNone) return;
    }
    Area area;
    f_.areas.push_back(std::move(area));
    start(f_.areas.back(), i);
    f_.area_of[i] = count;
  }

  // A new area's iteration space comes from its first instruction.
  void start(Area& area, int i) {
    const Instr& in = code_.instrs[i];
    const Dims& space = space_of(code_, f_.resolved, i);
    area.elements = space.size();
    area.merge(space);
    area.instrs.push_back(i);
    if (is_reduction(in.op)) take_reduction(area, i, reduction_of(in, space));
  }

  void open(int i, AreaKind kind, Cut cut) {
    for (int32_t o : code_.instrs[i].operands)
      if (o >= 0) note_cut(producer_area(o), cut, i);
    f_.area_of[i] = static_cast<int>(f_.areas.size());
    Area area;
    area.kind = kind;
    area.elements = code_.instrs[i].shape.size();
    area.instrs.push_back(i);
    f_.areas.push_back(std::move(area));
  }

  void place_matmul(int i) {
    const int left = limits_.unfused || code_.instrs[i].op != Op::kMATMUL ? -1 : producer_area(code_.instrs[i].operands[0]);
    Cut cut = Cut::kMatMul;
    if (left >= 0 && f_.areas[left].kind != AreaKind::kMove && extent_of(code_.instrs[i].operands[0]) != Extent::kJoined) {
      cut = chain(left, i);
      if (cut == Cut::kNone) return;
    }
    note_cut(left, cut, i);
    open(i, AreaKind::kCube, Cut::kMatMul);
    Area& area = f_.areas.back();
    const Dims& shape = code_.instrs[i].shape;
    area.merge(shape);
    area.cols = 1;
    for (int a = product_columns(code_.instrs[i].op, shape.rank); a < shape.rank; ++a) area.cols *= shape[a];
    if (code_.instrs[i].op != Op::kMATMUL) return;
    const Dims& a = shape_of(code_, code_.instrs[i].operands[0]);
    area.inner = a[a.rank - (code_.instrs[i].attrs[0] ? 2 : 1)];
  }

  // Adds a product whose left operand is the tile itself: attention's second, with whole rows of probabilities in the UB.
  Cut chain(int index, int i) {
    Area& area = f_.areas[index];
    const Instr& in = code_.instrs[i];
    const Dims& a = shape_of(code_, in.operands[0]);
    const int64_t rows = in.shape.size() / in.shape[in.shape.rank - 1], n = in.shape[in.shape.rank - 1], k = a[a.rank - 1];
    if (producer_area(in.operands[1]) >= index) return Cut::kRight;
    if (area.kind != AreaKind::kCube || code_.instrs[area.instrs[0]].op != Op::kMATMUL) return Cut::kVector;
    if (in.attrs[0]) return Cut::kTurned;
    if (area.instrs.size() >= limits_.longest_area) return Cut::kFull;
    if (area.cols != k || area.elements != a.size()) return Cut::kOrder;
    if (rows * k != area.elements || n == 1) return Cut::kBatches;
    const int64_t first_k = f_.areas[index].inner;
    if (n > kChainedColumns || (!area.rows_whole && k * (n + first_k) * item_size(DType::kF32) > kChainedBytes)) return Cut::kWide;
    if (const Cut cut = lies_in_tile(index, in.operands[0], f_.resolved.access[in.operands[0]], a, Extent::kFull); cut != Cut::kNone) return cut;
    if (!area.merge(a)) return Cut::kSpace;
    area.rows_whole = true;
    area.instrs.push_back(i);
    f_.area_of[i] = index;
    f_.extent[i] = Extent::kChained;
    return Cut::kNone;
  }

  // Adds instruction i to the area if it can be part of its tile code.
  Cut join(int index, int i) {
    Area& area = f_.areas[index];
    const Instr& in = code_.instrs[i];
    if (area.kind == AreaKind::kMove) return Cut::kMove;
    if (area.instrs.size() >= limits_.longest_area) return Cut::kFull;
    const Dims& space = space_of(code_, f_.resolved, i);
    if (is_reduction(in.op)) {
      if (space.size() != area.elements) return Cut::kSpace;
      const Reduction r = reduction_of(in, space);
      if (const Cut cut = reduction_fits(area, r); cut != Cut::kNone) return cut;
      if (const Cut cut = operand_fits(index, i, 0, space, Extent::kFull); cut != Cut::kNone) return cut;
      if (!area.merge(space)) return Cut::kSpace;
      area.instrs.push_back(i);
      take_reduction(area, i, r);
      f_.area_of[i] = index;
      return Cut::kNone;
    }
    const int64_t elements = in.shape.size();
    Extent extent = Extent::kFull;
    if (elements != area.elements) {
      if (!area.rows_whole || elements * area.cols != area.elements || !reads_row(index, in)) return elsewhere(index, in);
      extent = Extent::kRow;
    }
    for (size_t k = 0; k < in.operands.size(); ++k)
      if (in.operands[k] >= 0)
        if (const Cut cut = operand_fits(index, i, k, space, extent); cut != Cut::kNone) return cut;
    if (!area.merge(space, extent == Extent::kRow ? area.cols : 1)) return Cut::kSpace;
    area.instrs.push_back(i);
    f_.area_of[i] = index;
    f_.extent[i] = extent;
    return Cut::kNone;
  }

  // Another number of elements: the reason is the operand's, if one is not complete in the tile.
  Cut elsewhere(int index, const Instr& in) const {
    for (int32_t o : in.operands)
      if (o >= 0 && producer_area(o) == index) {
        if (extent_of(o) == Extent::kJoined) return Cut::kJoined;
        if (extent_of(o) == Extent::kChained) return Cut::kChained;
      }
    return Cut::kSpace;
  }

  Extent extent_of(int32_t value) const { return f_.extent[f_.resolved.access[value].root - inputs_]; }

  bool reads_row(int index, const Instr& in) const {
    for (int32_t o : in.operands)
      if (o >= 0 && producer_area(o) == index && extent_of(o) == Extent::kRow) return true;
    return false;
  }

  // Whether an operand made in this area lies in the tile as an instruction of shape `shape` wants it. Operands from memory always do.
  Cut operand_fits(int index, int i, size_t k, const Dims& shape, Extent result) const {
    const int32_t value = code_.instrs[i].operands[k];
    if (producer_area(value) != index) return Cut::kNone;
    // Most often the operand is as it was made.
    if (result == Extent::kFull && extent_of(value) == Extent::kFull && f_.resolved.access[value].root == value && shape_of(code_, value) == shape &&
        op_info(code_.instrs[i].op).cls != 'V')
      return Cut::kNone;
    return lies_in_tile(index, value, operand_access(code_, f_.resolved, i, k), shape, result);
  }

  Cut lies_in_tile(int index, int32_t value, const Access& access, const Dims& shape, Extent result) const {
    const Extent made = extent_of(value);
    if (made == Extent::kJoined) return Cut::kJoined;
    if (made == Extent::kChained) return Cut::kChained;
    if (made == Extent::kFull && result == Extent::kRow) return Cut::kSpace;
    if (access.offset != 0) return Cut::kOrder;
    const Dims& strides = access.strides;
    const int64_t cols = made == Extent::kRow && result == Extent::kFull ? f_.areas[index].cols : 1;
    int64_t step = 1;
    for (int a = shape.rank - 1; a >= 0; --a) {
      if (shape[a] == 1) continue;
      const bool column = step < cols;
      if (column && step * shape[a] > cols) return Cut::kOrder;
      if (strides[a] != (column ? 0 : step / cols)) return Cut::kOrder;
      step *= shape[a];
    }
    return Cut::kNone;
  }

  static bool is_row_reduction(const Reduction& r) { return r.inner == 1; }

  Cut reduction_fits(const Area& area, const Reduction& r) const {
    if (r.count == 1) return Cut::kNone;
    if (is_row_reduction(r)) {
      if (area.cols && area.cols != r.count) return Cut::kRows;
      if (r.count > limits_.longest_row && area.kind == AreaKind::kCube) return Cut::kLongRow;
      return Cut::kNone;
    }
    if (area.cols && area.cols != r.inner) return Cut::kRows;
    if (area.block_axis && area.block_axis != r.count) return Cut::kBlocks;
    return Cut::kNone;
  }

  // Over one element a reduction is a copy, whichever axis it is.
  void take_reduction(Area& area, int i, const Reduction& r) {
    if (r.count == 1) return;
    if (is_row_reduction(r)) {
      area.cols = r.count;
      if (r.count > limits_.longest_row) {
        area.row_joins = true;
        f_.extent[i] = Extent::kJoined;
      } else {
        area.rows_whole = true;
        f_.extent[i] = Extent::kRow;
      }
    } else {
      area.cols = r.inner;
      area.block_axis = r.count;
      f_.extent[i] = Extent::kJoined;
    }
    if (f_.extent[i] == Extent::kJoined && area.kind == AreaKind::kVector) area.kind = AreaKind::kReduce;
  }

  void fold_views() {
    for (int i = begin_; i < end_; ++i)
      for (int32_t o : code_.instrs[i].operands) {
        const int source = o - inputs_;
        if (source < begin_ || f_.folded_into[source] >= 0) continue;
        const Work work = f_.resolved.work[source];
        if ((work == Work::kView || is_uniform(work)) && f_.resolved.work[i] != Work::kDead) f_.folded_into[source] = i;
      }
  }

  const ProgramCode& code_;
  const int begin_, end_, inputs_;
  const FuseLimits limits_;
  Fusing f_;
};

}  // namespace

bool Area::merge(const Dims& shape, int64_t scale) {
  if (merged && merged_scale == scale && *merged == shape) return true;
  if (!bounds.merge(shape, scale)) return false;
  merged = &shape;
  merged_scale = scale;
  return true;
}

bool Bounds::merge(const Dims& shape, int64_t scale) {
  int64_t own[kMaxRank];
  int owned = 0;
  int64_t step = scale;
  for (int a = shape.rank - 1; a >= 0; --a) {
    if (shape[a] == 1) continue;
    step *= shape[a];
    own[owned++] = step;
  }
  Bounds out;
  int64_t before = 1;
  for (int i = 0, j = 0; i < count || j < owned;) {
    const int64_t next = j >= owned ? at[i] : i >= count ? own[j] : std::min(at[i], own[j]);
    if (i < count && at[i] == next) ++i;
    if (j < owned && own[j] == next) ++j;
    if (next % before != 0 || out.count == kMax) return false;
    if (next == before) continue;
    out.at[out.count++] = before = next;
  }
  *this = out;
  return true;
}

Fusing fuse(const ProgramCode& code, int begin, int end, const std::vector<uint8_t>& keep, const std::vector<uint8_t>& hooked, const FuseLimits& limits) {
  return Fuser(code, begin, end, keep, hooked, limits).run();
}

}  // namespace dvm
