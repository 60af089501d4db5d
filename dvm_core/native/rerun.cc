#include "rerun.h"

#include <algorithm>

#include "device_memory.h"
#include "fork.h"
#include "interp.h"
#include "segment.h"

namespace dvm {

namespace {

// A buffer of a simulated device that no log knows.
std::shared_ptr<Storage> result_memory(const Profile& profile, size_t bytes) {
  return profile.simulated ? device_adopt(profile, device_room(profile, bytes)) : allocate_unlogged(bytes);
}

}  // namespace

RerunReady::RerunReady(Launch& launch, const Profile& profile, bool unfused, bool all) : plan_(launch.inputs_again()), profile_(profile) {
  const ProgramCode& code = *plan_.code;
  for (size_t i = 0; i < code.instrs.size(); ++i) {
    const auto at = static_cast<size_t>(code.value_of(static_cast<int>(i)));
    if (all) plan_.keep[at] = 1;
    if (!plan_.keep[at]) continue;
    const Instr& instr = code.instrs[i];
    auto owner = result_memory(profile, static_cast<size_t>(instr.shape.size() * item_size(instr.dtype)));
    void* data = owner->data;
    plan_.values[at] = {data, instr.dtype, instr.shape, contiguous_strides(instr.shape), std::move(owner)};
  }
  // What lies on a device is read there by that device alone.
  for (size_t i = 0; i < code.inputs.size() && !profile.simulated; ++i) plan_.values[i] = host_value(plan_.values[i]);
  if (profile.elsewhere) return;
  SegmentRequest request;
  request.end = static_cast<int>(code.instrs.size());
  request.keep.assign(plan_.keep.size(), 0);
  std::copy(plan_.keep.begin() + code.value_of(0), plan_.keep.end(), request.keep.begin() + code.value_of(0));
  request.unfused = unfused;
  request.profile = &profile;
  segment_ = plan_.program->segment(code, plan_.geometry, request, false);
  const SegmentView& seen = view(segment());
  if (seen.workspace_bytes > 0) workspace_ = allocate_unlogged(static_cast<size_t>(seen.workspace_bytes));
  io_ = {&code, &plan_.values, workspace_ ? workspace_->data : nullptr, &stats_, nullptr, 1, &checks_};
  if (!profile.simulated) return;
  device_ = std::make_unique<DeviceValues>(profile, plan_.values.size());
  device_->prepare(segment(), plan_.values);
  io_.values = &device_->values();
}

void RerunReady::run() {
  if (profile_.elsewhere) return (*profile_.elsewhere)(code(), 0, static_cast<int>(code().instrs.size()), plan_.keep, plan_.values);
  const WhileRunning no_fork;
  const std::lock_guard running(segment_->running);
  run_unmeasured(segment(), io_);
  if (!device_) return;
  device_->fetch(segment(), plan_.values);
  fill_views(segment(), &plan_.values);
}

Value Rerun::value(int local_id) const {
  if (local_id < 0 || local_id >= static_cast<int>(ready_.values()))
    throw UserError("no value " + std::to_string(local_id) + " in a program of " + std::to_string(ready_.values()));
  return ready_.value(local_id);
}

// ---- tile instructions --------------------------------------------------------------------------------------------------------------------

namespace {

// The area's code, once all that comes before it has run.
const AreaCode& reach(RerunReady& ready, int area) {
  if (current_profile().elsewhere) throw UserError("a device that a library runs has no tile code");
  const std::vector<AreaCode>& areas = ready.segment().areas;
  if (area < 0 || area >= static_cast<int>(areas.size()))
    throw UserError("no area " + std::to_string(area) + " in a program of " + std::to_string(areas.size()));
  const AreaCode& code = areas[static_cast<size_t>(area)];
  if (code.move >= 0 || !code.tile) throw UserError("area " + std::to_string(area) + " moves data: it has no tile code");
  const WhileRunning no_fork;
  for (int a = 0; a < area; ++a) run_area(areas[static_cast<size_t>(a)], ready.io(), nullptr);
  return code;
}

int64_t count_tiles(Core core) {
  int64_t count = 0;
  const int64_t rows = core.run.area.space.tile_rows;
  for (int64_t u = 0; u < core.run.units; ++u) {
    const UnitTiles t = enter_unit(core, u);
    count += (t.last - t.first + rows - 1) / rows;
  }
  return count;
}

bool is_test(Tile id) {
  return (id >= Tile::kEqual && id <= Tile::kGreaterEqual) || id == Tile::kIsFinite || id == Tile::kIsNan || id == Tile::kIsInf || id == Tile::kLogicalNot;
}

constexpr bool makes_nothing(Tile id) { return id == Tile::kStrip || id == Tile::kNarrow || id == Tile::kTail || id >= Tile::kSumXJoin; }

}  // namespace

TileReplay::TileReplay(Launch& launch, int area)
    : ready_(launch, current_profile(), false, false),
      area_(area),
      code_(reach(ready_, area)),
      run_(code_, ready_.io()),
      ub_(static_cast<size_t>(code_.ub_bytes) + 256),
      at_(code_.slots.size()),
      core_{run_.run(), ub_.data() + (128 - reinterpret_cast<uintptr_t>(ub_.data()) % 128) % 128, at_.data()} {
  const WhileRunning no_fork;
  run_.prepare();
  std::copy(run_.run().base, run_.run().base + code_.slots.size(), core_.at);
  tiles_ = count_tiles(core_);
  if (*code_.prologue) {
    enter_tile(core_, 0, code_.space.tile_rows, 0, code_.space.tile_cols);
    size_t at = 0;
    for (const uint64_t* w = code_.prologue; *w; at += head_len(*w), w += head_len(*w)) {
      dvm::step(core_, w);
      note_all(w, -1, code_.tile->prologue_instr, at);
    }
    before_ = std::move(written_);
  }
  word_ = code_.code;
  enter_unit_at(0);
}

int TileReplay::instr() const {
  const auto at = static_cast<size_t>(word_ - code_.code);
  return done() || at >= code_.tile->instr.size() ? -1 : code_.tile->instr[at];
}

void TileReplay::enter_unit_at(int64_t unit) {
  unit_ = unit;
  unit_tiles_ = enter_unit(core_, unit);
  enter_row(unit_tiles_.first);
}

void TileReplay::enter_row(int64_t row) {
  enter_tile(core_, row, std::min(code_.space.tile_rows, unit_tiles_.last - row), unit_tiles_.col, unit_tiles_.cols);
  core_.first_of_block = row == unit_tiles_.first;
  word_ = code_.code;
  line_ = 0;
  written_.clear();
}

void TileReplay::step() {
  if (done()) return;
  const WhileRunning no_fork;
  dvm::step(core_, word_);
  const bool strip = head_id(*word_) == Tile::kStrip;
  const int64_t members = strip ? operand_a(word_[1]) : 0;
  note_all(word_, line_, code_.tile->instr, static_cast<size_t>(word_ - code_.code));
  word_ += head_len(*word_) + 2 * members;
  line_ += static_cast<int>(1 + members);
  if (!done()) return;
  const int64_t next = core_.row + code_.space.tile_rows;
  if (next < unit_tiles_.last) {
    enter_row(next);
  } else if (unit_ + 1 < run_.units()) {
    enter_unit_at(unit_ + 1);
  } else {
    return run_.finish();
  }
  ++tile_;
}

// An instruction that has run, or all of a strip.
void TileReplay::note_all(const uint64_t* word, int line, const std::vector<int32_t>& instrs, size_t at) {
  note(word, line, instrs[at]);
  if (head_id(*word) != Tile::kStrip) return;
  const uint64_t* member = word + head_len(*word);
  for (int64_t i = 0; i < int64_t(operand_a(word[1])); ++i, member += 2)
    note(member, line < 0 ? line : line + 1 + static_cast<int>(i), instrs[at + static_cast<size_t>(member - word)]);
}

void TileReplay::note(const uint64_t* word, int line, int instr) {
  const Tile id = head_id(*word);
  const uint32_t dst = head_dst(*word);
  if (makes_nothing(id) || ((dst & kVectors) == kVectors)) return;  // it stays in vector registers
  const Span span = head_span(*word);
  Written w{line, instr, dst, nullptr, is_test(id) ? DType::kBool : static_cast<DType>(head_dtype(*word)), 1, 1};
  if (span == Span::kFull || span == Span::kRow) w.rows = core_.rows;
  if (span == Span::kFull || span == Span::kCols) w.cols = core_.cols;
  if (id == Tile::kStoreView || id == Tile::kStore) return;  // what they write was made before
  w.at = static_cast<const uint8_t*>(core_.pointer(dst));
  const uint8_t* end = w.at + w.bytes();
  const auto over = [&](const Written& o) { return o.at < end && w.at < o.at + o.bytes(); };
  std::erase_if(written_, over);
  if (line >= 0) std::erase_if(before_, over);
  written_.push_back(w);
}

std::vector<TileReplay::Made> TileReplay::made() const {
  std::vector<Made> all;
  for (const auto* list : {&before_, &written_})
    for (const Written& w : *list) {
      Value v;
      v.dtype = w.dtype;
      v.shape.rank = 2;
      v.shape[0] = w.rows;
      v.shape[1] = w.cols;
      v.strides = contiguous_strides(v.shape);
      v.owner = allocate_unlogged(static_cast<size_t>(w.bytes()));
      v.data = v.owner->data;
      std::copy(w.at, w.at + w.bytes(), static_cast<uint8_t*>(v.data));
      all.push_back({w.line, w.instr, std::move(v), !is_global(w.operand)});
    }
  return all;
}

}  // namespace dvm
