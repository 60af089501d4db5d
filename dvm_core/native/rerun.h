// A launch's instructions once more, on the inputs it had, for the debugger: on another device, unfused, with every result kept, or up to a
// tile instruction. Nothing of it is logged, counted or hooked, and nothing of the launch is written.
#pragma once
#include <memory>
#include <vector>

#include "area_run.h"
#include "device.h"
#include "launch.h"

namespace dvm {

// Ready to run: compiled, with memory for what is kept.
class RerunReady {
 public:
  // all: keeps every result, else those the launch was asked for. Throws UserError where an input may not be read any more.
  RerunReady(Launch& launch, const Profile& profile, bool unfused, bool all);
  RerunReady(const RerunReady&) = delete;

  // All of it. Throws UserError of an instruction.
  void run();
  const ProgramCode& code() const { return *plan_.code; }
  const Value& value(int local_id) const { return plan_.values.at(static_cast<size_t>(local_id)); }
  size_t values() const { return plan_.values.size(); }
  Segment& segment() const { return *segment_->segment; }  // not of a device elsewhere
  RunIO& io() { return io_; }

 private:
  Launch::Plan plan_;
  const Profile& profile_;
  SegmentPtr segment_;
  std::shared_ptr<Storage> workspace_;
  std::unique_ptr<DeviceValues> device_;
  std::vector<Stats> stats_;
  std::vector<int> checks_;
  RunIO io_;
};

class Rerun {
 public:
  Rerun(Launch& launch, const Profile& profile, bool unfused, bool all) : ready_(launch, profile, unfused, all) { ready_.run(); }

  // By local id; data null: not kept. Throws UserError for no id.
  Value value(int local_id) const;

 private:
  RerunReady ready_;
};

// One area of a launch's fused code, tile instruction by tile instruction, tile after tile on one core.
class TileReplay {
 public:
  // Runs the areas before it and what comes before its tiles; stands before the first instruction of the first tile. Throws UserError, also
  // for an area that has no tile code.
  TileReplay(Launch& launch, int area);

  bool done() const { return !*word_; }
  int area() const { return area_; }
  int64_t tile() const { return tile_; }
  int64_t tiles() const { return tiles_; }
  const Core& core() const { return core_; }
  // Of the next instruction: its number in the listing of the area's tiles, and the tensor instruction it belongs to (-1: done).
  int line() const { return line_; }
  int instr() const;
  // Runs an instruction (a strip is one), at the end of a tile on to the next one, at the end of the last to the area's end.
  void step();

  // What tile instructions made that is still there, by line: of this tile, and before the tiles (line -1).
  struct Made {
    int line, instr;
    Value value;  // a copy: [rows, cols]
    bool local;   // in local memory, not in that of a result
  };
  std::vector<Made> made() const;

 private:
  struct Written {
    int line, instr;
    uint32_t operand;
    const uint8_t* at;
    DType dtype;
    int64_t rows, cols;
    int64_t bytes() const { return rows * cols * item_size(dtype); }
  };
  void note(const uint64_t* word, int line, int instr);
  void note_all(const uint64_t* word, int line, const std::vector<int32_t>& instrs, size_t at);
  void enter_unit_at(int64_t unit);
  void enter_row(int64_t row);

  RerunReady ready_;
  const int area_;
  const AreaCode& code_;
  AreaRun run_;
  std::vector<uint8_t> ub_;
  std::vector<void*> at_;
  Core core_;
  UnitTiles unit_tiles_;
  int64_t unit_ = 0, tile_ = 0, tiles_ = 0;
  const uint64_t* word_ = nullptr;
  int line_ = 0;
  std::vector<Written> before_, written_;
};

}  // namespace dvm
