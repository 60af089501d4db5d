// A compiled area from its first slot to its last hook: addresses, work before the tiles, the tiles, work after them.
#include <algorithm>
#include <array>
#include <memory>

#include "convolution.h"
#include "elements.h"
#include "interp.h"
#include "join.h"
#include "memory.h"
#include "pool.h"
#include "product.h"

namespace dvm {
namespace {

constexpr int64_t kPieces = 24;          // an area in pieces a worker takes at once
constexpr double kShareFromNs = 8000;    // less work stays on the calling thread

void finish_hooks(const Run& run) {
  for (size_t h = 0; h < run.area.hooks.size(); ++h) {
    const HookCode& hook = run.area.hooks[h];
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

void run_area(const AreaCode& area, RunIO& io, Sample* sample) {
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
  if (sample) sample->set_up = now_ns() - sample->begun;
  if (area.move >= 0) {
    run_move(area, *io.code, base);
  } else {
    run.units = area.space.units();
    for (const HookCode& h : area.hooks)
      if (!stats && h.kind == kHookStats && h.after < 0) stats.reset(new Stats[area.hooks.size() * static_cast<size_t>(run.units)]);
    run.stats = stats.get();
    for (const Product& p : area.products) prepare_product(run, p);
    for (const Convolution& v : area.convolutions) prepare_convolution(run, v);
    if (run.units == 1 || area.cost_ns < kShareFromNs) {
      run_units(run, 0, run.units, sample);
    } else {
      const int64_t pieces = std::min(run.units, kPieces);
      parallel_for(
          pieces, [&](int64_t piece, int worker) { run_units(run, run.units * piece / pieces, run.units * (piece + 1) / pieces, worker ? nullptr : sample); },
          static_cast<int64_t>(area.cost_ns));
    }
    for (const Join& j : area.joins) finish_join(run, j);
  }
  if (!area.hooks.empty()) finish_hooks(run);
}

}  // namespace dvm
