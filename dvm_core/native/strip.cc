// Instructions that follow one another are run as one strip, block by block: values that only the strip reads never leave vector registers.
// Each keeps its word, its line and its rounding; the head before them says how many. Sequences with a loop of their own go over rows and may
// end in reductions; any elementwise instructions of one space are a strip of steps. What does not fit between them goes before the strip, or
// after it if it reads what the strip makes.
#include "strip.h"

#include <algorithm>

#include "encoder.h"
#include "kernels.h"
#include "strip_kernels.h"

namespace dvm {
namespace {

constexpr size_t kMostInstructions = 24;
constexpr int64_t kNarrowestRows = 16;     // columns, where rows are gone through one by one
constexpr int64_t kSmallestTile = 512;     // elements: below, instructions one by one are as fast
constexpr int kLongestLoop = 16;
// Tiles of an area that is one strip. An eighth of it, up to what is worth waking a core for; a part for each of many cores, beyond.
constexpr int64_t kWorthACore = 8192, kFewCores = 8;
constexpr int64_t kLargestTile = 32768, kManyCores = 64;

bool is_row_reduction(Tile id) { return id == Tile::kSumX || id == Tile::kMaxX || id == Tile::kMinX; }
bool is_unary(const TileOp& op) { return op.b < 0; }
bool by_rows(const TileOp& op) { return is_row_reduction(op.id) || op.form == Form::kTX || op.form == Form::kXT; }
bool left_is_one(const TileOp& op) { return op.form == Form::kST || op.form == Form::kXT; }
bool right_is_one(const TileOp& op) { return op.form == Form::kTS || op.form == Form::kTX; }

// bfloat16, and what it is summed as: such instructions are in loops over rows, steps there are none.
bool is_brain(const TileOp& op) { return op.dtype == DType::kBF16 || (op.id == Tile::kCast && op.from == DType::kBF16 && op.dtype == DType::kF32); }

bool can_be_in_strip(const TileOp& op, int64_t cols) {
  if ((by_rows(op) || is_brain(op)) && cols < kNarrowestRows) return false;
  if (is_row_reduction(op.id)) return op.dtype == DType::kF32;
  if (op.span != Span::kFull || op.c >= 0 || op.id >= Tile::kSumX) return false;
  if (is_brain(op)) return true;
  if (op.dtype != DType::kF32 || op.id == Tile::kCast) return false;
  return strip_kernels().step({static_cast<Op>(op.id), op.dtype, Lane::kMemory, is_unary(op) ? Lane::kLast : Lane::kMemory, false});
}

// Where the operands and results of ops [first, end) are, if these are a strip. uses: of every register in the whole area. False: too many
// results wait at the side.
bool place_values(TileOp* first, TileOp* end, const std::vector<int32_t>& uses, const std::vector<Register>& registers) {
  const TileOp* side[kMostSides] = {};  // whose result waits there
  const TileOp* last = nullptr;
  for (TileOp* op = first; op != end; ++op) {
    op->from_a = op->from_b = op->to = TileOp::kPlace;
    const auto from = [&](int32_t reg) {
      if (reg < 0) return TileOp::kPlace;
      if (last && last->dst == reg) return TileOp::kLast;
      for (int n = 0; n < kMostSides; ++n)
        if (side[n] && side[n]->dst == reg) return static_cast<int8_t>(n + 1);
      return TileOp::kPlace;
    };
    op->from_a = from(op->a);
    op->from_b = from(op->b);
    for (const TileOp*& s : side)  // free after the last use
      if (s && std::none_of(op + 1, end, [&](const TileOp& later) { return later.a == s->dst || later.b == s->dst; })) s = nullptr;
    if (is_row_reduction(op->id)) continue;
    last = op;
    int32_t inside = 0;
    bool waits = false, hidden = false;  // wanted after another result has taken its place
    for (const TileOp* later = op + 1; later != end; ++later) {
      const int32_t reads = (later->a == op->dst) + (later->b == op->dst);
      inside += reads;
      waits = waits || (hidden && reads);
      hidden = hidden || !is_row_reduction(later->id);
    }
    const auto dst = static_cast<size_t>(op->dst);
    if (registers[dst].slot >= 0 || uses[dst] != inside || inside == 0) continue;
    op->to = TileOp::kLast;
    if (!waits) continue;
    for (int n = 0; n < kMostSides && op->to == TileOp::kLast; ++n)
      if (!side[n]) {
        side[n] = op;
        op->to = static_cast<int8_t>(n + 1);
      }
    if (op->to == TileOp::kLast) return false;
  }
  return true;
}

// ---- what the kernels need of a strip ---------------------------------------------------------------------------------------------------

// The steps of placed instructions; `word` of a register.
template <class Word>
StripCode steps_of(const TileOp* first, const TileOp* end, Word&& word) {
  StripCode code;
  const auto stream = [&](uint32_t w, bool written) {
    for (size_t s = 0; s < code.streams.size(); ++s)
      if (code.streams[s].word == w) {
        code.streams[s].out = code.streams[s].out || written;
        return static_cast<int8_t>(s);
      }
    code.streams.push_back({w, !written, written});
    return static_cast<int8_t>(code.streams.size() - 1);
  };
  const auto operand = [&](int32_t reg, int8_t at, DType t, bool one, bool of_row, Lane* lane) {
    StripCode::Operand o;
    *lane = one ? Lane::kOne : at == TileOp::kLast ? Lane::kLast : Lane::kMemory;
    if (at > TileOp::kLast) o.side = static_cast<int8_t>(at - 1);
    if (at != TileOp::kPlace) return o;
    o.word = word(reg);
    o.moves = one ? (of_row ? item_size(t) : 0) : -1;
    if (!one) o.stream = stream(o.word, false);
    return o;
  };
  const auto push = [&](const TileOp& op, Op id, DType t, StripCode::Step s) {
    s.kind.op = id;
    s.kind.dtype = t;
    s.kind.store = op.to != TileOp::kLast;
    if (s.kind.store && op.to > TileOp::kLast) s.out.side = static_cast<int8_t>(op.to - 1);
    else if (s.kind.store) s.out = {word(op.dst), -1, stream(word(op.dst), true), -1};
    code.steps.push_back(s);
  };
  for (const TileOp* op = first; op != end; ++op) {
    const DType in = op->id == Tile::kCast ? op->from : op->dtype;
    StripCode::Step s;
    s.x = operand(op->a, op->from_a, in, left_is_one(*op), op->form == Form::kXT, &s.kind.left);
    if (!is_unary(*op)) s.y = operand(op->b, op->from_b, in, right_is_one(*op), op->form == Form::kTX, &s.kind.right);
    else s.kind.right = Lane::kLast;
    if (is_row_reduction(op->id)) {
      s.kind = {static_cast<Op>(op->id), op->dtype, s.kind.left, Lane::kLast, true};
      s.out.word = word(op->dst);
      code.steps.push_back(s);
    } else {
      push(*op, static_cast<Op>(op->id), in, s);
    }
  }
  return code;
}

bool same_kind(const StripKind& a, const StripKind& b) {
  return a.op == b.op && a.dtype == b.dtype && a.left == b.left && a.right == b.right && a.store == b.store;
}

bool has_sides(const StripCode& code) {
  return std::any_of(code.steps.begin(), code.steps.end(), [](const StripCode::Step& s) { return s.x.side >= 0 || s.y.side >= 0 || s.out.side >= 0; });
}

// The loop whose steps these are, null if there is none.
const StripLoop* loop_of(const StripCode& code) {
  const StripKernels& kernels = strip_kernels();
  for (const StripLoop* loop = kernels.loops; loop != kernels.loops + kernels.loop_count; ++loop)
    if (std::equal(code.steps.begin(), code.steps.end(), loop->kinds, loop->kinds + loop->count,
                   [](const StripCode::Step& s, const StripKind& k) { return same_kind(s.kind, k); }))
      return loop;
  return nullptr;
}

// Whether these instructions have the names of a loop's steps: asked before anything that takes longer.
template <class Step>
bool named_as(const Step* steps, int count, const TileOp* first, const TileOp* end) {
  return end - first >= count && std::equal(steps, steps + count, first, [](const Step& s, const TileOp& op) { return s.op == static_cast<Op>(op.id); });
}

}  // namespace

// The longest loop that instructions from `first` on are, as their number; 0: none.
int Encoder::loop_at(TileOp* first, TileOp* end, const std::vector<int32_t>& uses) const {
  const StripKernels& kernels = strip_kernels();
  int longest = 0;
  for (int u = 0; u < kernels.update_count; ++u) {
    const UpdateLoop& update = kernels.updates[u];
    if (update.count > longest && named_as(update.steps, update.count, first, end) && place_values(first, first + update.count, uses, registers_) &&
        is_update(update, first))
      longest = update.count;
  }
  if (first->form != Form::kTX && first->form != Form::kXT && out_.space.tile_cols < kNarrowestRows) return longest;
  for (int l = 0; l < kernels.loop_count; ++l) {
    const StripLoop& loop = kernels.loops[l];
    const int count = loop.count;
    if (count <= longest || !named_as(loop.kinds, count, first, end) || !place_values(first, first + count, uses, registers_)) continue;
    const StripCode code = steps_of(first, first + count, [](int32_t reg) { return static_cast<uint32_t>(reg); });
    if (!has_sides(code) && loop_of(code) == &loop) longest = count;
  }
  return longest;
}

void Encoder::form_strips() {
  const int64_t cols = out_.space.tile_cols;
  if (out_.space.tile_rows * cols < kSmallestTile || ops_.size() < 2) return;
  std::vector<TileOp> done, strip, after;
  done.reserve(ops_.size() + 4);
  std::vector<int32_t> uses(registers_.size(), 0);
  std::vector<uint8_t> made(registers_.size(), 0);  // by register: 1 in the strip, 2 after it
  const auto each_operand = [](const TileOp& op, auto&& f) {
    for (const int32_t r : {op.a, op.b, op.c})
      if (r >= 0) f(static_cast<size_t>(r));
  };
  for (const TileOp& op : ops_) each_operand(op, [&](size_t r) { ++uses[r]; });

  const auto finish = [&](TileOp* first, TileOp* end) {
    bool is_strip = end - first > 1 && place_values(first, end, uses, registers_);
    if (is_strip) {
      const StripCode code = steps_of(first, end, [](int32_t reg) { return static_cast<uint32_t>(reg); });
      is_strip = code.streams.size() <= static_cast<size_t>(kMostStreams) && code.steps.size() <= static_cast<size_t>(kLongestStrip);
    }
    if (is_strip) {
      const auto count = static_cast<int32_t>(end - first);
      done.push_back({.id = Tile::kStrip, .dtype = first->dtype, .number = strips_++, .instr = first->instr, .behind = count});
    }
    for (TileOp* op = first; op != end; ++op) {
      if (!is_strip) op->from_a = op->from_b = op->to = TileOp::kPlace;
      else if (op->to != TileOp::kPlace) registers_[static_cast<size_t>(op->dst)].in_strip = true;
      done.push_back(*op);
    }
  };
  const auto close = [&] {
    TileOp *run = strip.data(), *op = run, *end = run + strip.size();
    while (op != end) {
      const int count = loop_at(op, std::min(end, op + kLongestLoop), uses);
      if (count || by_rows(*op) || is_brain(*op)) {
        finish(run, op);
        finish(op, op + std::max(count, 1));
        run = op += std::max(count, 1);
      } else {
        ++op;
      }
    }
    finish(run, end);
    done.insert(done.end(), after.begin(), after.end());
    strip.clear();
    after.clear();
    std::fill(made.begin(), made.end(), uint8_t{0});
  };

  for (const TileOp& op : ops_) {
    bool reads_strip = false, reads_after = false, reads_row = false;
    each_operand(op, [&](size_t r) {
      reads_strip = reads_strip || made[r] == 1;
      reads_after = reads_after || made[r] == 2;
      reads_row = reads_row || (made[r] == 1 && registers_[r].span == Span::kRow);
    });
    const bool fits = can_be_in_strip(op, cols);
    if (fits && (reads_after || reads_row || strip.size() >= kMostInstructions)) close();
    if (fits) strip.push_back(op);
    else if (reads_strip || reads_after) after.push_back(op);
    else done.push_back(op);
    if (op.dst >= 0 && (fits || reads_strip || reads_after)) made[static_cast<size_t>(op.dst)] = fits ? 1 : 2;
  }
  close();
  ops_ = std::move(done);
  widen_tiles();
}

// An area that is one strip has nothing in the caches between its instructions, however large its tiles are: the fewer, the less it takes to
// go from one to the next.
void Encoder::widen_tiles() {
  Geometry& g = out_.space;
  const bool one_strip = ops_.size() > 1 && ops_[0].id == Tile::kStrip && ops_[0].behind == static_cast<int32_t>(ops_.size()) - 1;
  if (in_.tile_elements || !one_strip || g.rows > 1 || std::any_of(ops_.begin(), ops_.end(), by_rows)) return;
  const int64_t wanted = std::max(std::min(g.cols / kFewCores, kWorthACore), std::min(g.cols / kManyCores, kLargestTile));
  g.tile_cols = std::max(g.tile_cols, (wanted + kStripMost - 1) / kStripMost * kStripMost);
  g.chunks = (g.cols + g.tile_cols - 1) / g.tile_cols;
}

StripCode Encoder::make_strip(const TileOp* ops, int32_t count) const {
  StripCode code = steps_of(ops, ops + count, [this](int32_t reg) { return operand_word(reg); });
  if (const UpdateLoop* update = update_of(ops, count)) {
    for (StripCode::Step& s : code.steps)
      if (s.kind.left == Lane::kOne) std::swap(s.x, s.y);
    code.loop = update->run;
  } else if (const StripLoop* loop = has_sides(code) ? nullptr : loop_of(code)) {
    code.loop = loop->run;
  } else {
    for (StripCode::Step& s : code.steps) s.run = strip_kernels().step(s.kind);
  }
  return code;
}

void do_strip(Core& c, const uint64_t* w) {
  const StripCode& code = c.run.area.tile->strips[operand_b(w[1])];
  const int count = static_cast<int>(code.steps.size());
  alignas(64) float sides[kMostSides][kStripMost];
  StripStep steps[kLongestStrip + 1];
  StripUses uses[kLongestStrip];
  StripStream streams[kMostStreams];
  const auto pointer = [&](const StripCode::Operand& o) { return o.side >= 0 ? sides[o.side] : c.pointer(o.word); };
  for (int k = 0; k < count; ++k) {
    const StripCode::Step& s = code.steps[static_cast<size_t>(k)];
    steps[k] = {s.run, pointer(s.x), pointer(s.y), pointer(s.out), s.x.moves, s.y.moves, s.out.moves};
    uses[k] = {s.x.stream, s.y.stream, s.out.stream};
  }
  if (code.loop) return code.loop({steps, nullptr, count, nullptr, 0, c.rows, c.cols});
  int n = 0;
  for (const StripCode::Stream& s : code.streams) streams[n++] = {static_cast<float*>(c.pointer(s.word)), s.in, s.out};
  strip_kernels().strip({steps, uses, count, streams, n, c.rows, c.cols});
}

}  // namespace dvm
