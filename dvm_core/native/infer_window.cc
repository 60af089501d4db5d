// Shape and dtype rules of convolutions and pools.
#include <initializer_list>

#include "infer.h"

namespace dvm {
namespace {

// Bounds that keep every position of a window within 2^54.
constexpr int64_t kMaxStep = 1 << 20, kMaxBefore = int64_t{1} << 52, kMaxExtent = int64_t{1} << 31;

void check_window(const Context& c, std::initializer_list<const char*> positive, std::initializer_list<size_t> places) {
  auto place = places.begin();
  for (const char* what : positive) {
    const size_t first = *place++;
    for (size_t i = first; i < first + (what == std::string("groups") ? 1 : 2); ++i)
      if (const int64_t x = c.instr.attrs[i]; x < 1 || x > kMaxStep)
        c.fail(std::string(what) + " must be 1 to " + std::to_string(kMaxStep) + ", got " + std::to_string(x));
  }
}

void check_before(const Context& c, size_t first) {
  for (size_t i = first; i < first + 2; ++i)
    if (const int64_t x = c.instr.attrs[i]; x < -kMaxBefore || x > kMaxBefore) c.fail("padding of " + std::to_string(x) + " is out of range");
}

void check_planes(const Context& c, const Dims& shape, const std::string& what) {
  if (shape.rank != 4) c.fail("needs rank 4 (batch, channels, height, width), got " + what + " (reshape it)");
  for (int a = 2; a < 4; ++a)
    if (shape[a] > kMaxExtent) c.fail(what + " is too wide");
}

}  // namespace

// CONV2D: image, weight, result; its gradient has the last two the other way round.
void infer_convolution(const Context& c) {
  c.attr_count(9, "stride, before, dilation and gap for y and x, groups");
  check_window(c, {"stride", "dilation", "gap", "groups"}, {0, 4, 6, 8});
  check_before(c, 2);
  const DType t = c.in[0].dtype;
  if (t != c.in[1].dtype) c.fail("operands differ in dtype: " + c.type(0) + " and " + c.type(1) + "; cast one of them");
  if (!is_float(t)) c.fail("does not take " + c.type(0) + "; cast both operands to a float dtype");
  const bool gradient = c.instr.op == Op::kCONV2D_WEIGHT;
  const Dims &image = c.shape(0), &weight = gradient ? c.instr.shape : c.shape(1), &out = gradient ? c.shape(1) : c.instr.shape;
  check_planes(c, image, c.type(0));
  check_planes(c, c.shape(1), c.type(1));
  check_planes(c, c.instr.shape, "result " + shape_text(c.instr.shape));
  const int64_t groups = c.instr.attrs[8];
  const std::string all =
      "image " + shape_text(image) + ", weight " + shape_text(weight) + " and result " + shape_text(out) + ", groups " + std::to_string(groups) + ": ";
  if (weight[2] < 1 || weight[3] < 1) c.fail(all + "the weight has no taps");
  if (image[0] != out[0]) c.fail(all + "the batches differ");
  if (out[1] != weight[0]) c.fail(all + "the result must have the weight's " + std::to_string(weight[0]) + " output channels");
  if (out[1] % groups != 0) c.fail(all + "groups must divide the output channels");
  if (image[1] % groups != 0 || image[1] / groups != weight[1])
    c.fail(all + "the weight must have " + std::to_string(image[1]) + " / " + std::to_string(groups) + " input channels");
}

void infer_pool(const Context& c) {
  const bool largest = c.instr.op == Op::kMAX_POOL2D || c.instr.op == Op::kMAX_POOL2D_GRAD;
  const bool gradient = c.instr.op == Op::kMAX_POOL2D_GRAD || c.instr.op == Op::kAVG_POOL2D_GRAD;
  c.attr_count(largest ? 8 : 10,
               largest ? "taps, stride, before and dilation for y and x" : "taps, stride, before and after for y and x, count padding, divisor");
  if (largest) check_window(c, {"taps", "stride", "dilation"}, {0, 2, 6});
  else check_window(c, {"taps", "stride"}, {0, 2});
  check_before(c, 4);
  if (!largest) check_before(c, 6);
  if (!largest && (c.instr.attrs[8] < 0 || c.instr.attrs[8] > 1)) c.fail("whether padding counts must be 0 or 1, got " + std::to_string(c.instr.attrs[8]));
  if (!largest && (c.instr.attrs[9] < 0 || c.instr.attrs[9] > kMaxBefore)) c.fail("a divisor of " + std::to_string(c.instr.attrs[9]) + " is out of range");
  const DType t = c.in[0].dtype;
  if (!is_float(t)) c.fail("does not take " + c.type(0) + "; cast it to a float dtype");
  if (c.in.size() > 2) c.fail("takes 1 or 2 operands, got " + std::to_string(c.in.size()));
  const size_t last = c.in.size() - 1;
  for (size_t i = 0; i <= last; ++i) check_planes(c, c.shape(i), c.type(i));
  check_planes(c, c.instr.shape, "result " + shape_text(c.instr.shape));
  if (c.in[last].dtype != t) c.fail("operands differ in dtype: " + c.type(0) + " and " + c.type(1) + "; cast one of them");
  if (last == 1 && !(c.shape(0) == (gradient ? c.instr.shape : c.shape(1))))
    c.fail(c.type(0) + " must have the shape of " + (gradient ? "the result " + shape_text(c.instr.shape) : c.type(1)));
  const Dims &image = gradient ? c.instr.shape : c.shape(0), &out = gradient ? c.shape(last) : c.instr.shape;
  if (image[0] != out[0] || image[1] != out[1]) c.fail("planes of " + shape_text(image) + " do not become planes of " + shape_text(out));
}

}  // namespace dvm
