#include "device_move.h"

#include <utility>

namespace dvm {
namespace {

void finish(const std::vector<CopyPtr>& copies) {
  for (const CopyPtr& copy : copies) finish_copy(*copy);
}

}  // namespace

void DeviceMove::add(const std::shared_ptr<Storage>& array) {
  if (to_.simulated && array && !on_device(array->data)) arrays_.try_emplace(array.get(), Array{array, nullptr, nullptr});
}

void DeviceMove::copy() {
  for (const DeviceBufferPtr& buffer : device_buffers()) {
    if (!buffer->is_written()) continue;  // a launch is at it, outside of captured calls: it is found where it is later
    DeviceBuffer::Place from = buffer->place();
    if (from.device != &to_ && (from.device->simulated || to_.simulated)) arrivals_.push_back({buffer, std::move(from), nullptr, nullptr});
  }
  // Room for all of it first: what has none is told before anything is copied.
  for (Arrival& a : arrivals_) {
    bytes_ += static_cast<int64_t>(a.buffer->bytes);
    a.host = a.from.device->simulated ? allocate_unlogged(a.buffer->bytes) : a.from.cells;
    if (to_.simulated) a.cells = device_room(to_, a.buffer->bytes, true);
  }
  for (auto& [key, array] : arrays_) {
    bytes_ += static_cast<int64_t>(array.host->bytes);
    array.cells = device_room(to_, array.host->bytes, true);
  }
  std::vector<CopyPtr> copies;
  const auto start = [&](const Profile& device, CopyFor what, const std::shared_ptr<Storage>& to, const std::shared_ptr<Storage>& from, size_t bytes) {
    copies.push_back(start_copy(device, what, {to, to->data}, {from, from->data}, bytes));
  };
  for (const Arrival& a : arrivals_)
    if (a.from.device->simulated) start(*a.from.device, CopyFor::kMoveOut, a.host, a.from.cells, a.buffer->bytes);
  finish(copies);
  if (!to_.simulated) return;
  copies.clear();
  for (const Arrival& a : arrivals_) start(to_, CopyFor::kMoveIn, a.cells, a.host, a.buffer->bytes);
  for (const auto& [key, array] : arrays_) start(to_, CopyFor::kMoveIn, array.cells, array.host, array.host->bytes);
  finish(copies);
  for (auto& [key, array] : arrays_) array.moved = device_adopt(to_, array.cells);
}

void DeviceMove::commit() noexcept {
  for (Arrival& arrival : arrivals_) arrival.buffer->move_to({&to_, to_.simulated ? arrival.cells : arrival.host});
}

std::shared_ptr<Storage> DeviceMove::moved(const Storage& array) const {
  const auto found = arrays_.find(&array);
  if (found != arrays_.end()) return found->second.moved;
  if (!to_.simulated)
    for (const Arrival& arrival : arrivals_)
      if (arrival.buffer->address == reinterpret_cast<uintptr_t>(array.data)) return arrival.host;
  return nullptr;
}

}  // namespace dvm
