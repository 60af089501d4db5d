#include "device.h"

#include <atomic>
#include <cstring>
#include <utility>

#include "copies.h"
#include "device_memory.h"
#include "segment.h"

namespace dvm {
namespace {

std::atomic<int64_t> resident_inputs{0}, resident_results{0}, resident_bytes{0};

template <class F>
void each_value(const Segment& segment, bool written, F&& fn) {
  for (const AreaCode& area : segment.areas)
    for (const GlobalSlot& slot : area.slots)
      if (slot.kind == GlobalSlot::kValue && slot.written == written) fn(static_cast<size_t>(slot.value));
}

int64_t bytes_of(const Value& v) { return v.shape.size() * item_size(v.dtype); }

void count_resident(std::atomic<int64_t>& what, const Value& v) {
  what.fetch_add(1, std::memory_order_relaxed);
  resident_bytes.fetch_add(bytes_of(v), std::memory_order_relaxed);
}

}  // namespace

void DeviceValues::prepare(const Segment& segment, const std::vector<Value>& wanted) {
  const auto on_this_device = [&](const Value& v) {
    Value d = v;
    int64_t offset = 0;
    const DeviceBuffer::Place place = device_buffer(v.data, &offset)->place();
    if (place.device != &profile_) return Value{};
    d.owner = place.cells;
    d.data = static_cast<char*>(d.owner->data) + offset;
    return d;
  };
  // What a segment writes is made there; the rest of what it reads is brought.
  each_value(segment, true, [&](size_t v) {
    if (values_[v].data) return;
    if (on_device(wanted[v].data)) {
      values_[v] = on_this_device(wanted[v]);
      count_resident(resident_results, wanted[v]);
      return;
    }
    Value& d = values_[v] = wanted[v];
    d.owner = device_room(profile_, static_cast<size_t>(bytes_of(d)));
    d.data = d.owner->data;
  });
  std::vector<CopyPtr> copies;
  each_value(segment, false, [&](size_t v) {
    if (values_[v].data || !wanted[v].data) return;
    if (on_device(wanted[v].data)) {
      values_[v] = on_this_device(wanted[v]);
      if (values_[v].data) return count_resident(resident_inputs, wanted[v]);
    }
    const Value from = host_value(wanted[v]);
    const Region region = region_of(from);
    Value d = from;
    d.owner = device_room(profile_, region.bytes());
    d.data = static_cast<char*>(d.owner->data) - region.low;
    // The program's memory may go away while a copy is under way: the engine reads a buffer of its own.
    auto staged = allocate_unlogged(region.bytes());
    std::memcpy(staged->data, static_cast<const char*>(from.data) + region.low, region.bytes());
    copies.push_back(start_copy(profile_, CopyFor::kIn, {d.owner, d.owner->data}, {staged, staged->data}, region.bytes()));
    values_[v] = std::move(d);
  });
  for (const CopyPtr& copy : copies) finish_copy(*copy);
}

void DeviceValues::fetch(const Segment& segment, const std::vector<Value>& wanted) {
  std::vector<std::pair<size_t, CopyPtr>> copies;
  each_value(segment, true, [&](size_t v) {
    const auto bytes = static_cast<size_t>(bytes_of(values_[v]));
    if (on_device(wanted[v].data)) {
      int64_t offset = 0;
      return device_buffer(wanted[v].data, &offset)->written();
    }
    if (!wanted[v].data || bytes == 0) return;
    for (const auto& [seen, copy] : copies)
      if (seen == v) return;
    const auto host = allocate_unlogged(bytes);
    copies.emplace_back(v, start_copy(profile_, CopyFor::kOut, {host, host->data}, {values_[v].owner, values_[v].data}, bytes));
  });
  for (const auto& [v, copy] : copies) finish_copy(*copy);
  for (const auto& [v, copy] : copies) std::memcpy(wanted[v].data, copy->to.get(), copy->bytes);
}

ResidentStats resident_stats() { return {resident_inputs.load(), resident_results.load(), resident_bytes.load()}; }

}  // namespace dvm
