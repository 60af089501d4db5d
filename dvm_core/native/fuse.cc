// Greedy in program order. Areas run in the order of their creation, and an instruction may join any area that is not before the areas
// of its operands: then no path can leave an area and come back, whatever lies between in the program.
#include "fuse.h"

#include <algorithm>

#include "optable.h"

namespace dvm {
namespace {

constexpr int kLookBack = 12;            // areas an instruction may try to join
constexpr size_t kLongestArea = 192;     // instructions

enum class Cut : uint8_t { kNone, kMove, kMatMul, kSpace, kOrder, kJoined, kLongRow, kRows, kBlocks, kFull };

class Fuser {
 public:
  Fuser(const ProgramCode& code, int begin, int end, const std::vector<uint8_t>& keep, const std::vector<uint8_t>& hooked, bool unfused)
      : code_(code), begin_(begin), end_(end), inputs_(static_cast<int>(code.inputs.size())), unfused_(unfused) {
    std::vector<uint8_t> needed(inputs_ + end, 0);
    for (int i = end - 1; i >= begin; --i) {
      const int v = inputs_ + i;
      if (keep[v] || hooked[i]) needed[v] = 1;
      if (!needed[v]) continue;
      for (int32_t o : code.instrs[i].operands)
        if (o >= 0) needed[o] = 1;
    }
    f_.resolved = resolve(code, begin, end, keep, needed, hooked);
    f_.area_of.assign(end, -1);
    f_.extent.assign(end, Extent::kFull);
    f_.folded_into.assign(end, -1);
  }

  Fusing run() {
    for (int i = begin_; i < end_; ++i) {
      switch (f_.resolved.work[i]) {
        case Work::kTile: place(i); break;
        case Work::kMatMul: open_matmul(i); break;
        case Work::kMove:
        case Work::kFill: open(i, AreaKind::kMove, Cut::kMove); break;
        case Work::kDead: f_.folded_into[i] = i; break;
        default: break;
      }
    }
    fold_views();
    for (Area& a : f_.areas)
      if (a.cut.empty()) a.cut = unfused_ ? "each instruction runs alone" : a.kind == AreaKind::kMove ? "data movement runs alone" : "nothing more to fuse";
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
    if (area >= 0 && f_.areas[area].cut.empty() && !unfused_) f_.areas[area].cut = words(f_.areas[area], cut, i);
  }

  void place(int i) {
    const Instr& in = code_.instrs[i];
    const int latest = latest_producer(in), count = static_cast<int>(f_.areas.size());
    if (!unfused_) {
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
    area.bounds.merge(space);
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

  void open_matmul(int i) {
    open(i, AreaKind::kCube, Cut::kMatMul);
    Area& area = f_.areas.back();
    const Dims& shape = code_.instrs[i].shape;
    area.bounds.merge(shape);
    area.cols = shape[shape.rank - 1];
  }

  // Adds instruction i to the area if it can be part of its tile code.
  Cut join(int index, int i) {
    Area& area = f_.areas[index];
    const Instr& in = code_.instrs[i];
    if (area.kind == AreaKind::kMove) return Cut::kMove;
    if (area.instrs.size() >= kLongestArea) return Cut::kFull;
    Bounds merged = area.bounds;
    const Dims& space = space_of(code_, f_.resolved, i);
    if (is_reduction(in.op)) {
      if (space.size() != area.elements) return Cut::kSpace;
      const Reduction r = reduction_of(in, space);
      if (const Cut cut = reduction_fits(area, r); cut != Cut::kNone) return cut;
      if (const Cut cut = operand_fits(index, i, 0, space, Extent::kFull); cut != Cut::kNone) return cut;
      if (!merged.merge(space)) return Cut::kSpace;
      area.bounds = merged;
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
    if (!merged.merge(space, extent == Extent::kRow ? area.cols : 1)) return Cut::kSpace;
    area.bounds = merged;
    area.instrs.push_back(i);
    f_.area_of[i] = index;
    f_.extent[i] = extent;
    return Cut::kNone;
  }

  // Another number of elements: the reason is the operand's, if one is not complete in the tile.
  Cut elsewhere(int index, const Instr& in) const {
    for (int32_t o : in.operands)
      if (o >= 0 && producer_area(o) == index && extent_of(o) == Extent::kJoined) return Cut::kJoined;
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
    const Extent made = extent_of(value);
    if (made == Extent::kJoined) return Cut::kJoined;
    if (made == Extent::kFull && result == Extent::kRow) return Cut::kSpace;
    const Access access = operand_access(code_, f_.resolved, i, k);
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

  static Cut reduction_fits(const Area& area, const Reduction& r) {
    if (r.count == 1) return Cut::kNone;
    if (is_row_reduction(r)) {
      if (area.cols && area.cols != r.count) return Cut::kRows;
      if (r.count > kLongestRow && area.kind == AreaKind::kCube) return Cut::kLongRow;
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
      if (r.count > kLongestRow) {
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
        if ((work == Work::kView || work == Work::kImmediate) && f_.resolved.work[i] != Work::kDead) f_.folded_into[source] = i;
      }
  }

  std::string words(const Area& area, Cut cut, int i) const {
    const Instr& in = code_.instrs[i];
    const std::string name = std::string(op_name(in.op)) + " (#" + std::to_string(i) + ")";
    switch (cut) {
      case Cut::kMove: return name + " moves data and runs alone";
      case Cut::kMatMul: return "MATMUL (#" + std::to_string(i) + ") needs its operands in memory";
      case Cut::kSpace:
        return "different iteration space: " + shape_text(in.shape) + " of " + name + " after " + shape_text(space_of(code_, f_.resolved, area.instrs[0]));
      case Cut::kOrder: return name + " reads the result in another order";
      case Cut::kJoined: return name + " needs a reduction that is complete only after all tiles";
      case Cut::kLongRow: return "a row of " + std::to_string(shape_of(code_, in.operands[0]).size() / in.shape.size()) + " elements is longer than a tile";
      case Cut::kRows: return name + " reduces other axes than this area's rows";
      case Cut::kBlocks: return name + " reduces other rows together than this area";
      case Cut::kFull: return "the area has " + std::to_string(area.instrs.size()) + " instructions";
      default: return "";
    }
  }

  const ProgramCode& code_;
  const int begin_, end_, inputs_;
  const bool unfused_;
  Fusing f_;
};

}  // namespace

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

Fusing fuse(const ProgramCode& code, int begin, int end, const std::vector<uint8_t>& keep, const std::vector<uint8_t>& hooked, bool unfused) {
  return Fuser(code, begin, end, keep, hooked, unfused).run();
}

}  // namespace dvm
