// A compiled area from its first slot to its last hook: addresses, work before the tiles, the tiles, work after them.
#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "area_run.h"
#include "convolution.h"
#include "elements.h"
#include "interp.h"
#include "join.h"
#include "memory.h"
#include "optable.h"
#include "panels.h"
#include "pool.h"
#include "product.h"
#include "profile.h"

namespace dvm {
namespace {

constexpr double kShareFromNs = 8000;    // less work stays on the calling thread
constexpr double kPieceNs = 1000;        // less is not worth a piece of its own
constexpr double kStackFromNs = 16000;   // of a stack, which takes a microsecond to lay out

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

AreaRun::AreaRun(const AreaCode& area, RunIO& io) : area_(area), run_{area, kernels(), io, inline_base_.data(), nullptr, 0} {
  const size_t slots = area.slots.size();
  Cell* cells = inline_cells_.data();
  if (slots > kInline) {
    more_base_.reset(new void*[slots]);
    more_cells_.reset(new Cell[slots]);
    run_.base = more_base_.get();
    cells = more_cells_.get();
  }
  for (size_t s = 0; s < slots; ++s) run_.base[s] = slot_base(area, area.slots[s], io, cells + s);
}

void AreaRun::prepare() {
  static std::atomic<uint64_t> runs{0};
  if (*area_.prologue) run_.number = runs.fetch_add(1, std::memory_order_relaxed) + 1;
  run_.units = area_.space.units();
  for (const HookCode& h : area_.hooks)
    if (!stats_ && h.kind == kHookStats && h.after < 0) stats_.reset(new Stats[area_.hooks.size() * static_cast<size_t>(run_.units)]);
  run_.stats = stats_.get();
  if (area_.profile) coverage_ = std::make_unique<Coverage>(area_, *run_.io.code, run_.base);
  run_.coverage = coverage_.get();
  for (size_t i = 0; i < area_.products.size(); ++i) {
    const uint8_t* const kept = kept_panels(run_, area_.products[i]);
    if (kept) keep_panels(i, kept);
    prepare_product(run_, area_.products[i], kept);
  }
  for (const Convolution& v : area_.convolutions) prepare_convolution(run_, v);
}

void AreaRun::tiles(int64_t piece, int64_t pieces, Sample* sample) const {
  run_units(run_, run_.units * piece / pieces, run_.units * (piece + 1) / pieces, sample);
}

void AreaRun::move() const { run_move(area_, *run_.io.code, run_.base); }

void AreaRun::finish() const {
  int32_t instr = -1;
  if (const std::string fault = coverage_ ? coverage_->fault(&instr) : ""; !fault.empty()) {
    const Instr& in = run_.io.code->instrs[static_cast<size_t>(instr)];
    throw UserError(std::string(op_name(in.op)) + ": " + fault, in.place);
  }
  for (const Join& j : area_.joins) finish_join(run_, j);
  if (!area_.hooks.empty()) finish_hooks(run_);
}

void AreaRun::keep_panels(size_t product, const uint8_t* panels) {
  const size_t products = area_.products.size();
  if (!run_.kept) {
    if (products > kInlineProducts) more_kept_.reset(new const uint8_t*[products]);
    run_.kept = more_kept_ ? more_kept_.get() : inline_kept_.data();
    std::fill_n(more_kept_ ? more_kept_.get() : inline_kept_.data(), products, nullptr);
  }
  (more_kept_ ? more_kept_.get() : inline_kept_.data())[product] = panels;
}

bool is_short(const AreaCode& area) { return area.cost_ns < kShareFromNs && !area.profile; }

void run_area(const AreaCode& area, RunIO& io, Sample* sample) {
  AreaRun run(area, io);
  if (sample) sample->set_up = now_ns() - sample->begun;
  if (area.move >= 0) {
    run.move();
  } else {
    run.prepare();
    if (area.profile) {
      const int64_t cores = std::min<int64_t>(run.units(), area.profile->vector_cores);
      parallel_for(cores, [&](int64_t core, int) { run.tiles(core, cores, nullptr); }, area.cost_ns);
    } else if (run.units() == 1 || area.cost_ns < kShareFromNs) {
      run.tiles(0, 1, sample);
    } else {
      const int64_t pieces = std::min({run.units(), kPieces, static_cast<int64_t>(std::min(area.cost_ns / kPieceNs, 1e9))});
      parallel_for(pieces, [&](int64_t piece, int worker) { run.tiles(piece, pieces, worker ? nullptr : sample); }, area.cost_ns);
    }
  }
  run.finish();
}

bool run_stack(const AreaCode* areas, int count, RunIO& io, int64_t* ns) {
  double cost_ns = 0;
  for (int a = 0; a < count; ++a) cost_ns += areas[a].cost_ns;
  if (cost_ns < kStackFromNs || pool_threads() == 1) return false;
  std::deque<AreaRun> runs;
  struct Piece {
    int area;
    int64_t number, of;
  };
  std::vector<Piece> pieces;
  pieces.reserve(static_cast<size_t>(kPieces + count));
  for (int a = 0; a < count; ++a) {
    AreaRun& run = runs.emplace_back(areas[a], io);
    run.prepare();
    const auto share = static_cast<int64_t>(static_cast<double>(kPieces) * run.cost_ns() / cost_ns);
    const int64_t of = std::clamp<int64_t>(share, 1, run.units());
    for (int64_t number = 0; number < of; ++number) pieces.push_back({a, number, of});
  }
  parallel_for(
      static_cast<int64_t>(pieces.size()),
      [&](int64_t unit, int) {
        const Piece& p = pieces[static_cast<size_t>(unit)];
        const int64_t start = now_ns();
        runs[static_cast<size_t>(p.area)].tiles(p.number, p.of, nullptr);
        __atomic_fetch_add(ns + p.area, now_ns() - start, __ATOMIC_RELAXED);
      },
      cost_ns);
  for (const AreaRun& run : runs) run.finish();
  return true;
}

}  // namespace dvm
