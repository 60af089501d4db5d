#include "device_memory.h"

#include <algorithm>
#include <map>
#include <new>
#include <utility>

#include "copies.h"
#include "fork.h"
#include "pages.h"

namespace dvm {

std::atomic<uintptr_t> device_addresses{0};

namespace {

constexpr uintptr_t kUnit = 512;    // addresses are multiples of it, and a gap of at least one byte follows each buffer
constexpr int kWithAddress = -1;    // Storage::size_class of what has a device's address

std::atomic<int64_t> memory_limit{0};

struct Room {
  std::atomic<int64_t> used{0}, peak{0};
};
Room& room_of(const Profile& device) {
  static Room* rooms = new Room[static_cast<size_t>(kFixedProfiles)];
  int i = kFixedProfiles - 1;
  while (i > 0 && &device != &profile_at(i)) --i;
  return rooms[i];  // the host's for whatever has no memory of its own here: devices added at run time too
}

int64_t limit_of(const Profile& device) {
  const int64_t given = memory_limit.load(std::memory_order_relaxed);
  return given ? given : device.memory_bytes;
}

uintptr_t reserve_addresses() {
  try {
    return reinterpret_cast<uintptr_t>(reserve_pages(kDeviceAddresses));
  } catch (const std::bad_alloc&) {
    throw UserError("a simulated device needs 256 GiB of addresses, no memory behind them, and this process may not have them; see ulimit -v");
  }
}

// The buffers that live, by address. An address is given out again as late as the range allows, so that a stale one is told.
class Addresses {
 public:
  Addresses() : begin_(reserve_addresses()), next_(begin_) { device_addresses.store(begin_, std::memory_order_release); }

  DeviceBufferPtr add(const Profile& device, size_t bytes, std::shared_ptr<Storage> cells) {
    const uintptr_t length = (bytes / kUnit + 1) * kUnit;
    std::lock_guard lock(mutex_);
    bool again = false;
    for (uintptr_t at = next_;;) {
      if (at + length > begin_ + kDeviceAddresses) {
        if (std::exchange(again, true)) throw UserError(std::string(device.name) + " has no addresses for " + std::to_string(bytes) + " bytes more");
        at = begin_;
      }
      const auto after = buffers_.upper_bound(at + length - 1);
      if (after != buffers_.begin()) {
        const auto& [there, buffer] = *std::prev(after);
        const uintptr_t end = there + (buffer->bytes / kUnit + 1) * kUnit;
        if (end > at) {
          at = end;
          continue;
        }
      }
      next_ = at + length;
      return buffers_[at] = std::make_shared<DeviceBuffer>(at, bytes, device, std::move(cells));
    }
  }

  DeviceBufferPtr find(uintptr_t address) {
    std::lock_guard lock(mutex_);
    const auto after = buffers_.upper_bound(address);
    if (after == buffers_.begin()) return nullptr;
    const DeviceBufferPtr& buffer = std::prev(after)->second;
    return address - buffer->address <= buffer->bytes ? buffer : nullptr;
  }

  void remove(uintptr_t address) noexcept {
    DeviceBufferPtr gone;  // goes without the lock: it gives memory back
    std::lock_guard lock(mutex_);
    const auto at = buffers_.find(address);
    if (at == buffers_.end()) return;
    gone = std::move(at->second);
    buffers_.erase(at);
  }

  std::vector<DeviceBufferPtr> all() {
    std::vector<DeviceBufferPtr> found;
    std::lock_guard lock(mutex_);
    for (const auto& [address, buffer] : buffers_) found.push_back(buffer);
    return found;
  }

  std::mutex& mutex() { return mutex_; }

 private:
  std::mutex mutex_;
  std::map<uintptr_t, DeviceBufferPtr> buffers_;
  const uintptr_t begin_;
  uintptr_t next_;
};

// Never destroyed: arrays handed to Python outlive static destructors.
Addresses& addresses() {
  static Addresses* all = [] {
    auto* made = new Addresses;
    guard_at_fork(ForkRank::addresses, made->mutex());
    return made;
  }();
  return *all;
}

std::shared_ptr<Storage> with_address(const DeviceBuffer& buffer) {
  auto storage = std::make_shared<Storage>();
  storage->data = reinterpret_cast<void*>(buffer.address);
  storage->bytes = buffer.bytes;
  storage->size_class = kWithAddress;
  return storage;
}

}  // namespace

DeviceBuffer::DeviceBuffer(uintptr_t address_, size_t bytes_, const Profile& device, std::shared_ptr<Storage> cells)
    : address(address_), bytes(bytes_), place_{&device, std::move(cells)} {}

DeviceBuffer::Place DeviceBuffer::place() {
  std::lock_guard lock(mutex_);
  return place_;
}

void DeviceBuffer::move_to(Place place) noexcept {
  std::lock_guard lock(mutex_);
  std::swap(place_, place);
}

std::shared_ptr<Storage> DeviceBuffer::on_host() {
  Place from;
  {
    std::lock_guard lock(mutex_);
    if (!place_.device->simulated) return place_.cells;
    if (auto copied = copy_.lock()) return copied;
    from = place_;
  }
  auto host = allocate_unlogged(bytes);
  const CopyPtr copy = start_copy(*from.device, CopyFor::kOut, {host, host->data}, {from.cells, from.cells->data}, bytes);
  finish_copy(*copy);
  std::lock_guard lock(mutex_);
  copy_ = host;
  return host;
}

std::shared_ptr<Storage> device_room(const Profile& device, size_t bytes, bool in_move) {
  Room& room = room_of(device);
  const auto wanted = static_cast<int64_t>(bytes);
  const auto refuse = [&](int64_t used) {
    throw UserError(std::string(device.name) + " has no room for " + std::to_string(bytes) + " bytes more: " + std::to_string(used) + " of " +
                    std::to_string(limit_of(device)) + " are in use");
  };
  if (room_is_planted_to_fail(in_move)) refuse(room.used.load());
  const int64_t used = room.used.fetch_add(wanted) + wanted;
  const auto give_back = [&room, wanted] { room.used.fetch_sub(wanted); };
  if (used > limit_of(device)) {
    give_back();
    refuse(used - wanted);
  }
  int64_t peak = room.peak.load();
  while (used > peak && !room.peak.compare_exchange_weak(peak, used)) {}
  std::shared_ptr<Storage> cells;
  try {
    cells = allocate_unlogged(bytes);
  } catch (...) {
    give_back();
    throw;
  }
  Storage* plain = cells.get();
  return {plain, [cells = std::move(cells), give_back](Storage*) { give_back(); }};
}

std::shared_ptr<Storage> device_adopt(const Profile& device, std::shared_ptr<Storage> cells) {
  const size_t bytes = cells->bytes;
  const DeviceBufferPtr buffer = addresses().add(device, bytes, std::move(cells));
  buffer->written();
  return with_address(*buffer);
}

std::shared_ptr<Storage> device_allocate(const Profile& device, size_t bytes, const BufferTag* tag) {
  auto storage = with_address(*addresses().add(device, bytes, device_room(device, bytes)));
  if (memory_log_on()) storage->log_id = log_buffer(storage->data, static_cast<int64_t>(bytes), tag ? *tag : BufferTag{});
  return storage;
}

void device_let_go(const Storage& storage) noexcept { addresses().remove(reinterpret_cast<uintptr_t>(storage.data)); }

DeviceBufferPtr device_buffer(const void* address, int64_t* offset) {
  DeviceBufferPtr found = addresses().find(reinterpret_cast<uintptr_t>(address));
  if (!found) throw UserError("no buffer lives at this address of a device any more");
  *offset = static_cast<int64_t>(reinterpret_cast<uintptr_t>(address) - found->address);
  return found;
}

std::vector<DeviceBufferPtr> device_buffers() {
  if (!device_addresses.load(std::memory_order_acquire)) return {};
  return addresses().all();
}

Value host_value(const Value& value) {
  if (!on_device(value.data)) return value;
  int64_t offset = 0;
  const DeviceBufferPtr buffer = device_buffer(value.data, &offset);
  Value found = value;
  found.owner = buffer->on_host();
  found.data = static_cast<char*>(found.owner->data) + offset;
  return found;
}

Region region_of(const Value& v) {
  const int item = item_size(v.dtype);
  if (v.shape.size() == 0) return {};
  Region r{0, item};
  for (int a = 0; a < v.shape.rank; ++a) {
    const int64_t reach = (v.shape[a] - 1) * v.strides[a] * item;
    (reach < 0 ? r.low : r.high) += reach;
  }
  return r;
}

DeviceMemoryStats device_memory(const Profile& device) {
  const Room& room = room_of(device);
  return {room.used.load(), room.peak.load(), limit_of(device)};
}

void set_device_memory(int64_t bytes) {
  if (bytes < 0) throw UserError("set_device_memory: " + std::to_string(bytes) + " bytes");
  memory_limit.store(bytes);
}

}  // namespace dvm
