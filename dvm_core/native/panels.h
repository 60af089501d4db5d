// Right sides of products that are constants (dvm.constant): B in packed panels, made at the first product that wants them and kept with the
// memory they were made from. Nothing else is: memory of a caller may be written unseen.
#pragma once
#include <array>
#include <atomic>
#include <mutex>

#include "core.h"

namespace dvm {

// Of one constant; it lives and dies with the constant's Storage.
class Panels {
 public:
  // B of this product, all its matrices, packed; null: not kept (products of that many kinds have it already, or there is no memory).
  const uint8_t* of(const Run& run, const Product& p);

 private:
  // A right side: where it begins in the constant, and how it lies there.
  struct Kind {
    const void* at = nullptr;
    DType dtype = DType::kNone;
    int64_t k = 0, n = 0, row = 0, col = 0, matrices = 0;
    std::vector<std::array<int64_t, 2>> axes;  // extent and stride of those that tell matrices apart
    bool is(const void* base, const Product& p) const;
  };
  struct Kept {
    Kind kind;
    std::shared_ptr<Storage> memory;
  };
  static constexpr int kMost = 4;  // forward and backward, and the same of a part
  std::array<Kept, kMost> kept_;
  std::atomic<int> count_{0};      // of them, those that may be read
  std::mutex mutex_;               // making one
};

// The panels kept for product p's right side; null: it is no constant, or they do not pay.
const uint8_t* kept_panels(const Run& run, const Product& p);

struct PanelStats {
  int64_t built = 0, used = 0, bytes = 0;  // bytes: kept now
};
PanelStats panel_stats();

}  // namespace dvm
