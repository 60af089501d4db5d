// Switching devices: everything that lives on one is brought to another, or nothing is.
#pragma once
#include <memory>
#include <unordered_map>
#include <vector>

#include "copies.h"
#include "device_memory.h"

namespace dvm {

class DeviceMove {
 public:
  explicit DeviceMove(const Profile& to) : to_(to) {}

  // Memory of an array on the host, which nothing writes any more: it goes along if the new device has memory of its own.
  void add(const std::shared_ptr<Storage>& array);
  // Copies everything. Throws UserError if a copy fails or takes too long or there is no room: nothing has changed then.
  void copy();
  // From now on the buffers are where they were copied to.
  void commit() noexcept;

  // What holds an array's bytes now; null: what did before.
  std::shared_ptr<Storage> moved(const Storage& array) const;
  int64_t bytes() const { return bytes_; }
  int64_t buffers() const { return static_cast<int64_t>(arrivals_.size() + arrays_.size()); }

 private:
  struct Arrival {
    DeviceBufferPtr buffer;
    DeviceBuffer::Place from;
    std::shared_ptr<Storage> host, cells;
  };
  struct Array {
    std::shared_ptr<Storage> host, cells, moved;
  };
  const Profile& to_;
  std::vector<Arrival> arrivals_;
  std::unordered_map<const Storage*, Array> arrays_;
  int64_t bytes_ = 0;
};

}  // namespace dvm
