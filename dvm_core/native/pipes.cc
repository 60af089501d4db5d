// A core of a simulated NPU: its pipes run side by side and wait for each other by events alone. Loads run as far ahead as they may and
// stores as late as they can, so that a wait which is missing shows in the results.
#include <algorithm>
#include <array>
#include <vector>

#include "interp.h"
#include "profile.h"

namespace dvm {
namespace {

// One pipe: where it is among the tiles of units [from, to), with its own idea of what the current tile is.
class Cursor {
 public:
  Cursor(const Core& core, Pipe pipe, int64_t from, int64_t to) : pipe_(pipe), unit_(from), end_(to), at_(core.run.area.slots.size()), core_(core) {
    core_.at = at_.data();
    if (unit_ < end_) {
      tiles_ = enter_unit(core_, unit_);
      enter(tiles_.first);
      seek();
    }
  }

  bool done() const { return unit_ >= end_; }
  const uint64_t* word() const { return word_; }
  bool first_tile() const { return first_; }
  bool last_tile() const { return unit_ + 1 == end_ && core_.row + core_.rows >= tiles_.last; }

  void run() {
    step(core_, word_);
    word_ += head_len(*word_);
    seek();
  }

 private:
  // To the pipe's next instruction, in this tile or a later one.
  void seek() {
    for (;;) {
      while (*word_ && pipe_of(head_id(*word_)) != pipe_) word_ += head_len(*word_);
      if (*word_) return;
      first_ = false;
      if (core_.row + core_.rows < tiles_.last) {
        enter(core_.row + core_.rows);
      } else if (++unit_ < end_) {
        tiles_ = enter_unit(core_, unit_);
        enter(tiles_.first);
      } else {
        return;
      }
    }
  }

  void enter(int64_t row) {
    enter_tile(core_, row, std::min(core_.run.area.space.tile_rows, tiles_.last - row), tiles_.col, tiles_.cols);
    core_.first_of_block = row == tiles_.first;
    word_ = core_.run.area.code;
  }

  const Pipe pipe_;
  int64_t unit_;
  const int64_t end_;
  std::vector<void*> at_;
  Core core_;
  UnitTiles tiles_;
  const uint64_t* word_ = nullptr;
  bool first_ = true;
};

class Machine {
 public:
  Machine(const Core& core, int64_t from, int64_t to)
      : cursors_{Cursor(core, Pipe::kLoad, from, to), Cursor(core, Pipe::kSimd, from, to), Cursor(core, Pipe::kStore, from, to)} {}

  void run() {
    for (;;) {
      bool moved = false, left = false;
      for (int p = 0; p < kPipes && !moved; ++p) {
        Cursor& c = cursors_[static_cast<size_t>(p)];
        if (c.done()) continue;
        left = true;
        moved = try_step(static_cast<Pipe>(p), c);
      }
      if (!left) return;
      if (!moved) throw UserError("the pipes of a simulated core wait for each other: an event that is waited for is never set");
    }
  }

 private:
  bool try_step(Pipe pipe, Cursor& c) {
    const uint64_t head = *c.word(), sync = head_synced(head) ? c.word()[head_len(head) - 1] : 0;
    const bool back_wait = !c.first_tile(), back_set = !c.last_tile();
    for (int o = 0; o < kPipes && sync; ++o) {
      const auto other = static_cast<Pipe>(o);
      if (!is_set(other, pipe, sync_event(sync, Sync::kWait, other))) return false;
      if (back_wait && !is_set(other, pipe, sync_event(sync, Sync::kBackWait, other))) return false;
    }
    for (int o = 0; o < kPipes && sync; ++o) {
      const auto other = static_cast<Pipe>(o);
      take(other, pipe, sync_event(sync, Sync::kWait, other));
      if (back_wait) take(other, pipe, sync_event(sync, Sync::kBackWait, other));
    }
    c.run();
    for (int o = 0; o < kPipes && sync; ++o) {
      const auto other = static_cast<Pipe>(o);
      give(pipe, other, sync_event(sync, Sync::kSet, other));
      if (back_set) give(pipe, other, sync_event(sync, Sync::kBackSet, other));
    }
    return true;
  }

  bool is_set(Pipe from, Pipe to, int event) const {
    return event < 0 || events_[static_cast<size_t>(from)][static_cast<size_t>(to)][static_cast<size_t>(event)] > 0;
  }
  void take(Pipe from, Pipe to, int event) {
    if (event >= 0) --events_[static_cast<size_t>(from)][static_cast<size_t>(to)][static_cast<size_t>(event)];
  }
  void give(Pipe from, Pipe to, int event) {
    if (event >= 0) ++events_[static_cast<size_t>(from)][static_cast<size_t>(to)][static_cast<size_t>(event)];
  }

  std::array<Cursor, kPipes> cursors_;
  std::array<std::array<std::array<int, kEvents>, kPipes>, kPipes> events_{};
};

}  // namespace

void run_pipes(const Core& core, int64_t from, int64_t to) { Machine(core, from, to).run(); }

}  // namespace dvm
