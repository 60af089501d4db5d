#include "panels.h"

#include <new>

#include "memory.h"
#include "product.h"

namespace dvm {
namespace {

std::atomic<int64_t> built{0}, used{0}, bytes{0};

// Counted as kept until it goes.
std::shared_ptr<Storage> counted(std::shared_ptr<Storage> memory) {
  const auto size = static_cast<int64_t>(memory->bytes);
  bytes.fetch_add(size, std::memory_order_relaxed);
  Storage* const storage = memory.get();
  return {storage, [memory = std::move(memory), size](Storage*) { bytes.fetch_sub(size, std::memory_order_relaxed); }};
}

}  // namespace

bool Panels::Kind::is(const void* base, const Product& p) const {
  if (at != base || dtype != p.from || k != p.k || n != p.n || row != p.b.row || col != p.b.col || matrices != p.b.matrices) return false;
  size_t x = 0;
  for (const Product::BatchAxis& axis : p.axes)
    if (axis.b_matrix && (x == axes.size() || axes[x++] != std::array{axis.extent, axis.b})) return false;
  return x == axes.size();
}

const uint8_t* Panels::of(const Run& run, const Product& p) {
  const void* const base = run.base[p.b.slot];
  const auto find = [&](int from, int to) -> const uint8_t* {
    for (int i = from; i < to; ++i)
      if (kept_[static_cast<size_t>(i)].kind.is(base, p)) return static_cast<const uint8_t*>(kept_[static_cast<size_t>(i)].memory->data);
    return nullptr;
  };
  const int seen = count_.load(std::memory_order_acquire);
  if (const uint8_t* found = find(0, seen)) return found;
  if (seen == kMost) return nullptr;
  // Another run may be at it: its panels are worth waiting for.
  std::lock_guard lock(mutex_);
  const int count = count_.load(std::memory_order_relaxed);
  if (const uint8_t* found = find(seen, count)) return found;
  if (count == kMost) return nullptr;
  Kept& made = kept_[static_cast<size_t>(count)];
  BufferTag tag;
  tag.name = "panels";
  tag.cls = "parameter";
  try {
    made.memory = counted(allocate(static_cast<size_t>(p.b.matrices * panel_bytes(run.k, p)), &tag));
  } catch (const std::bad_alloc&) {
    return nullptr;  // B is read where it lies
  }
  made.kind = {base, p.from, p.k, p.n, p.b.row, p.b.col, p.b.matrices, {}};
  for (const Product::BatchAxis& axis : p.axes)
    if (axis.b_matrix) made.kind.axes.push_back({axis.extent, axis.b});
  auto* const to = static_cast<uint8_t*>(made.memory->data);
  pack_matrices(run, p, to);
  built.fetch_add(1, std::memory_order_relaxed);
  count_.store(count + 1, std::memory_order_release);
  return to;
}

const uint8_t* kept_panels(const Run& run, const Product& p) {
  const GlobalSlot& slot = run.area.slots[static_cast<size_t>(p.b.slot)];
  if (slot.kind != GlobalSlot::kValue || run.area.profile) return nullptr;
  Panels* const panels = (*run.io.values)[static_cast<size_t>(slot.value)].panels;
  if (!panels || !gains_from_panels(p)) return nullptr;
  const uint8_t* const found = panels->of(run, p);
  if (found) used.fetch_add(1, std::memory_order_relaxed);
  return found;
}

PanelStats panel_stats() { return {built.load(), used.load(), bytes.load()}; }

}  // namespace dvm
