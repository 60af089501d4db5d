// One run of an area: what is done around its tiles.
#pragma once
#include <array>
#include <memory>

#include "core.h"
#include "coverage.h"
#include "elements.h"
#include "sample.h"

namespace dvm {

// One run of an area: addresses and work before the tiles, the tiles, work after them.
class AreaRun {
 public:
  AreaRun(const AreaCode& area, RunIO& io);
  AreaRun(const AreaRun&) = delete;
  AreaRun& operator=(const AreaRun&) = delete;

  void prepare();
  const Run& run() const { return run_; }
  int64_t units() const { return run_.units; }
  double cost_ns() const { return area_.cost_ns; }
  // Piece number `piece` of `pieces`.
  void tiles(int64_t piece, int64_t pieces, Sample* sample) const;
  void move() const;
  // Throws UserError if something of a result was not written (simulated devices).
  void finish() const;

 private:
  void keep_panels(size_t product, const uint8_t* panels);

  static constexpr size_t kInline = 40, kInlineProducts = 4;
  const AreaCode& area_;
  std::array<void*, kInline> inline_base_;
  std::array<Cell, kInline> inline_cells_;
  std::array<const uint8_t*, kInlineProducts> inline_kept_;
  std::unique_ptr<void*[]> more_base_;
  std::unique_ptr<Cell[]> more_cells_;
  std::unique_ptr<const uint8_t*[]> more_kept_;
  std::unique_ptr<Stats[]> stats_;
  std::unique_ptr<Coverage> coverage_;
  Run run_;
};

}  // namespace dvm
