// The memory of simulated devices. A buffer has an address that says which bytes are meant and that nobody can read: its bytes lie where
// the simulation keeps them, and move when the device is switched.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "memory.h"
#include "profile.h"
#include "program.h"

namespace dvm {

// All addresses of devices lie in one range without pages behind it, reserved when the first is given out.
inline constexpr size_t kDeviceAddresses = size_t{256} << 30;
extern std::atomic<uintptr_t> device_addresses;  // where it begins; 0: no device has given out memory yet
inline bool on_device(const void* data) {
  const uintptr_t begin = device_addresses.load(std::memory_order_acquire);
  return begin && reinterpret_cast<uintptr_t>(data) - begin < kDeviceAddresses;
}

class DeviceBuffer {
 public:
  DeviceBuffer(uintptr_t address, size_t bytes, const Profile& device, std::shared_ptr<Storage> cells);

  // Where its bytes are: in the memory of a device, or (device: the cpu's profile) of the host.
  struct Place {
    const Profile* device;
    std::shared_ptr<Storage> cells;
  };
  Place place();
  void move_to(Place place) noexcept;
  // The launch that writes it is done with it: from now on nobody writes it, and it may be moved.
  void written() { written_.store(true, std::memory_order_release); }
  bool is_written() const { return written_.load(std::memory_order_acquire); }
  // Its bytes on the host, copied there unless they are. Throws UserError if the copy fails or takes too long.
  std::shared_ptr<Storage> on_host();

  const uintptr_t address;
  const size_t bytes;

 private:
  std::mutex mutex_;
  std::atomic<bool> written_{false};
  Place place_;
  std::weak_ptr<Storage> copy_;  // on the host, while somebody has it
};
using DeviceBufferPtr = std::shared_ptr<DeviceBuffer>;

// Room in a device's memory, without an address. Throws UserError if there is none.
std::shared_ptr<Storage> device_room(const Profile& device, size_t bytes, bool in_move = false);
// A buffer with an address, to be written: `data` of what it returns, whose end is the buffer's. Throws UserError.
std::shared_ptr<Storage> device_allocate(const Profile& device, size_t bytes, const BufferTag* tag);
// The same for bytes that are on the device already, written.
std::shared_ptr<Storage> device_adopt(const Profile& device, std::shared_ptr<Storage> cells);
// For ~Storage.
void device_let_go(const Storage& storage) noexcept;

// The buffer an address lies in, and how far from its begin. Throws UserError if it is none that lives.
DeviceBufferPtr device_buffer(const void* address, int64_t* offset);
std::vector<DeviceBufferPtr> device_buffers();

// The value in host memory; itself if it is there. Throws UserError if a copy fails or takes too long.
Value host_value(const Value& value);
// The bytes a value's elements lie in: from `low` to `high`, relative to its data.
struct Region {
  int64_t low = 0, high = 0;
  size_t bytes() const { return static_cast<size_t>(high - low); }
};
Region region_of(const Value& value);

struct DeviceMemoryStats {
  int64_t used = 0, peak = 0, limit = 0;
};
DeviceMemoryStats device_memory(const Profile& device);
// For tests: how much memory simulated devices have; 0: what their profiles say.
void set_device_memory(int64_t bytes);

}  // namespace dvm
