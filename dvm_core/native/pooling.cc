// Pooling and its gradients, one plane after the other; halves are computed in float32 and rounded at the end.
#include <cstring>
#include <vector>

#include "encode.h"
#include "interp.h"
#include "pool.h"

namespace dvm {
namespace {

// A plane in the dtype it is computed in.
class Plane {
 public:
  Plane(const Kernels& k, DType stored, DType computed) : stored_(stored), widen_(k.cast[int(stored)][int(computed)]), item_(item_size(stored)) {}
  const void* read(const void* planes, int64_t number, int64_t elements) {
    const auto* at = static_cast<const uint8_t*>(planes) + number * elements * item_;
    if (stored_ != DType::kF16 && stored_ != DType::kBF16) return at;
    wide_.resize(static_cast<size_t>(elements));
    widen_(wide_.data(), at, elements);
    return wide_.data();
  }

 private:
  DType stored_;
  Unary widen_;
  int item_;
  std::vector<float> wide_;
};

MeanWindow mean_window(const Window& w, const std::vector<int64_t>& attrs) {
  const bool padding = attrs[8];
  const auto low = [&](size_t k) { return padding ? -attrs[4 + k] : 0; };
  const auto high = [&](size_t k, int64_t in) { return padding ? in + attrs[6 + k] : in; };
  return {w, low(0), high(0, w.y.in), low(1), high(1, w.x.in), attrs[9]};
}

}  // namespace

void run_pool(const Instr& in, const void* a, const void* b, const Dims& last_shape, void* dst) {
  const bool largest = in.op == Op::kMAX_POOL2D || in.op == Op::kMAX_POOL2D_GRAD;
  const bool back = in.op == Op::kMAX_POOL2D_GRAD || in.op == Op::kAVG_POOL2D_GRAD;
  const DType dtype = compute_dtype(in.dtype);
  const int d = static_cast<int>(dtype), item = item_size(in.dtype);
  const Kernels& k = kernels();
  const Dims &image = back ? in.shape : last_shape, &out = back ? last_shape : in.shape;
  const int64_t pixels = image[2] * image[3], outputs = out[2] * out[3], made = back ? pixels : outputs;
  const auto axis = [&](int which, size_t n) {
    return WindowAxis{image[which], out[which], in.attrs[n], in.attrs[2 + n], in.attrs[4 + n], largest ? in.attrs[6 + n] : 1, 1};
  };
  const Window w{axis(2, 0), axis(3, 1), 0, image[3], 1};
  const MeanWindow mean = largest ? MeanWindow{} : mean_window(w, in.attrs);
  const bool halves = dtype != in.dtype;
  const auto plane = [&](int64_t number, int) {
    Plane first(k, in.dtype, dtype), second(k, in.dtype, dtype);
    uint8_t* to = static_cast<uint8_t*>(dst) + number * made * item;
    std::vector<float> wide(halves ? static_cast<size_t>(made) : 0);
    void* result = halves ? static_cast<void*>(wide.data()) : to;
    if (back) std::memset(result, 0, static_cast<size_t>(made * item_size(dtype)));
    switch (in.op) {
      case Op::kMAX_POOL2D:
        if (b) k.pool_max_pick[d](result, first.read(a, number, pixels), second.read(b, number, pixels), w);
        else k.pool_max[d](result, first.read(a, number, pixels), w);
        break;
      case Op::kAVG_POOL2D: k.pool_mean[d](result, first.read(a, number, pixels), mean); break;
      case Op::kAVG_POOL2D_GRAD: k.pool_mean_back[d](result, first.read(a, number, outputs), mean); break;
      default: k.pool_max_back[d](result, first.read(a, number, pixels), second.read(b, number, outputs), w);
    }
    if (halves) k.cast[int(DType::kF32)][int(in.dtype)](to, wide.data(), made);
  };
  // In floating point: taps are bounded by 2^20 each, not by memory.
  const double cost = double(image[0] * image[1]) * (double(pixels) + double(outputs) * double(w.y.taps) * double(w.x.taps));
  parallel_for(image[0] * image[1], plane, cost);
}

}  // namespace dvm
