// Instructions with an index operand: GATHER and SCATTER move slices along an axis, ..._ELEMENTS single elements.
#include <cstring>

#include "move.h"
#include "optable.h"

namespace dvm {
namespace {

[[noreturn]] void out_of_range(const Move& m, const Dims& index, int64_t given, int64_t element, int64_t extent) {
  throw UserError(std::string(op_name(m.in.op)) + ": index " + std::to_string(given) + " (element " + std::to_string(element) + " of the index " +
                      shape_text(index) + ") is out of range for axis " + std::to_string(m.in.attrs[0]) + " of extent " + std::to_string(extent),
                  m.in.place);
}

// The index values, negative ones counted from the end.
std::vector<int64_t> indices(const Move& m, const Memory& index, int64_t extent) {
  std::vector<uint8_t> copy;
  const uint8_t* data = contiguous(index, &copy);
  std::vector<int64_t> out(static_cast<size_t>(index.shape.size()));
  m.k.cast[int(index.dtype)][int(DType::kI64)](out.data(), data, static_cast<int64_t>(out.size()));
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t given = out[i];
    if (given < 0) out[i] += extent;
    if (out[i] < 0 || out[i] >= extent) out_of_range(m, index.shape, given, static_cast<int64_t>(i), extent);
  }
  return out;
}

// n items from `src`, `index` steps apart each.
template <class T>
void take_items(uint8_t* dst, const uint8_t* src, const int64_t* index, int64_t n, int64_t step) {
  for (int64_t i = 0; i < n; ++i) std::memcpy(dst + i * int64_t{sizeof(T)}, src + index[i] * step, sizeof(T));
}

// Elements named by an index of the same rank: element (o, i, j) of the index around the axis belongs to the element of a tensor with
// these strides (bytes) at (o, index, j). Only elements with the same o and j can meet, so units of them are independent.
class Elements {
 public:
  Elements(const Move& m, const Memory& index, int axis, const Dims& shape, const Dims& strides, DType dtype)
      : m_(m),
        index_(index),
        target_(shape[axis]),
        outer_(product(index.shape, 0, axis)),
        extent_(index.shape[axis]),
        inner_(product(index.shape, axis + 1, index.shape.rank)),
        step_(strides[axis] * item_size(dtype)) {
    data_ = contiguous(index, &copy_);
    const Memory at{nullptr, dtype, index.shape, strides};
    outer_axes_ = axes_of(at, 0, axis);
    const std::vector<ViewAxis> inner_axes = axes_of(at, axis + 1, index.shape.rank);
    offsets_.resize(static_cast<size_t>(inner_));
    for (int64_t j = 0; j < inner_; ++j) offsets_[static_cast<size_t>(j)] = offset_of(inner_axes, j);
  }

  // fn(number of the index's element, offset in bytes of the tensor's) for all elements, those that meet in the order of the axis.
  template <class F>
  void each(F&& fn) const {
    if (index_.dtype == DType::kI64) walk(reinterpret_cast<const int64_t*>(data_), fn);
    else walk(reinterpret_cast<const int32_t*>(data_), fn);
  }

 private:
  // `count` elements of the index from number `at` on. In steps, so that each is a short loop with nothing to wait for.
  template <class I, class F>
  void run(const I* index, int64_t at, int64_t count, int64_t base, const int64_t* offsets, F&& fn) const {
    constexpr int64_t kChunk = 512;
    int64_t place[kChunk];
    for (int64_t first = 0; first < count; first += kChunk) {
      const int64_t n = std::min(kChunk, count - first);
      const I* given = index + at + first;
      bool beyond = false;
      for (int64_t k = 0; k < n; ++k) {
        const int64_t p = given[k] < 0 ? given[k] + target_ : given[k];
        beyond |= static_cast<uint64_t>(p) >= static_cast<uint64_t>(target_);
        place[k] = p;
      }
      if (beyond)
        for (int64_t k = 0; k < n; ++k)
          if (given[k] < -target_ || given[k] >= target_) out_of_range(m_, index_.shape, given[k], at + first + k, target_);
      for (int64_t k = 0; k < n; ++k) place[k] = base + place[k] * step_ + (offsets ? offsets[first + k] : 0);
      for (int64_t k = 0; k < n; ++k) fn(at + first + k, place[k]);
    }
  }

  template <class I, class F>
  void walk(const I* index, F&& fn) const {
    if (index_.shape.size() == 0) return;
    const int64_t bands = std::clamp<int64_t>(extent_ * inner_ / 16384, 1, std::min<int64_t>(inner_, 8)), units = outer_ * bands;
    const auto unit = [&](int64_t u) {
      const int64_t o = u / bands, low = inner_ * (u % bands) / bands, high = inner_ * (u % bands + 1) / bands;
      const int64_t base = offset_of(outer_axes_, o);
      if (inner_ == 1) return run(index, o * extent_, extent_, base, nullptr, fn);
      for (int64_t i = 0; i < extent_; ++i) run(index, (o * extent_ + i) * inner_ + low, high - low, base, offsets_.data() + low, fn);
    };
    in_pieces(units, index_.shape.size() * 16, [&](int64_t from, int64_t to) {
      for (int64_t u = from; u < to; ++u) unit(u);
    });
  }

  const Move& m_;
  const Memory& index_;
  const int64_t target_, outer_, extent_, inner_, step_;
  std::vector<uint8_t> copy_;
  const uint8_t* data_;
  std::vector<ViewAxis> outer_axes_;
  std::vector<int64_t> offsets_;
};

// fn(a zero of an unsigned type of the item's size)
template <class F>
void by_item(int item, F&& fn) {
  switch (item) {
    case 1: return fn(uint8_t{});
    case 2: return fn(uint16_t{});
    case 4: return fn(uint32_t{});
    default: return fn(uint64_t{});
  }
}

// The result begins as a copy of the first operand.
void copy_first(const Move& m) {
  const Memory& a = m.operands[0];
  const Rows rows(a, a.shape.rank - 1);
  in_pieces(a.shape.size() / rows.width, a.shape.size() * m.item,
            [&](int64_t from, int64_t to) { rows.read(m.dst + from * rows.width * m.item, from, to - from); });
}

// Units of a target whose axis has `extent` places are cut in bands of them: each is written by one worker, which goes through the index in order.
int64_t bands_of(int64_t bytes, int64_t extent) { return std::clamp<int64_t>(bytes / 65536, 1, std::min<int64_t>(extent, 8)); }

}  // namespace

void gather(const Move& m) {
  const Memory& a = m.operands[0];
  const int axis = static_cast<int>(m.in.attrs[0]);
  const std::vector<int64_t> index = indices(m, m.operands[1], a.shape[axis]);
  const auto count = static_cast<int64_t>(index.size()), outer = product(a.shape, 0, axis), inner = product(a.shape, axis + 1, a.shape.rank);
  const int64_t extent = a.shape[axis], bytes = inner * m.item, step = a.strides[axis] * m.item;
  const std::vector<ViewAxis> outer_axes = axes_of(a, 0, axis), inner_axes = axes_of(a, axis + 1, a.shape.rank);
  const bool run = inner == 1 || (inner_axes.size() == 1 && inner_axes[0].stride == m.item);
  const Rows slices(a, axis + 1);  // row o * extent + i is one slice
  // Result (o, i) is slice index[i] of outer position o; pieces may begin and end within an o.
  in_pieces(outer * count, outer * count * bytes, [&](int64_t from, int64_t to) {
    uint8_t* dst = m.dst + from * bytes;
    while (from < to) {
      const int64_t o = from / count, first = from % count, n = std::min(count - first, to - from);
      const int64_t* at = index.data() + first;
      const uint8_t* src = a.data + offset_of(outer_axes, o);
      if (!run)
        for (int64_t i = 0; i < n; ++i) slices.read(dst + i * bytes, o * extent + at[i], 1);
      else if (bytes == 4) take_items<uint32_t>(dst, src, at, n, step);
      else if (bytes == 8) take_items<uint64_t>(dst, src, at, n, step);
      else
        for (int64_t i = 0; i < n; ++i) std::memcpy(dst + i * bytes, src + at[i] * step, static_cast<size_t>(bytes));
      dst += n * bytes;
      from += n;
    }
  });
}

void scatter_add(const Move& m) {
  const Memory& a = m.operands[0];
  const Dims& shape = m.in.shape;
  const int axis = static_cast<int>(m.in.attrs[0]);
  const int64_t extent = shape[axis], outer = product(shape, 0, axis), inner = product(shape, axis + 1, shape.rank);
  const std::vector<int64_t> index = indices(m, m.operands[1], extent);
  const auto count = static_cast<int64_t>(index.size());
  std::vector<uint8_t> copy;
  const uint8_t* src = contiguous(a, &copy);
  const int64_t bytes = inner * m.item;
  // Halves are summed in float32 and rounded once.
  const DType sum = compute_dtype(a.dtype);
  const bool halves = sum != a.dtype;
  const int64_t wide = inner * item_size(sum);
  const Binary add = m.k.binary[int(Op::kADD)][int(sum)];
  const Unary widen = m.k.cast[int(a.dtype)][int(sum)], narrow = m.k.cast[int(sum)][int(a.dtype)];
  const int64_t bands = bands_of(count * bytes, extent);
  const auto band = [&](int64_t unit, int) {
    const int64_t o = unit / bands, low = extent * (unit % bands) / bands, high = extent * (unit % bands + 1) / bands;
    uint8_t* dst = m.dst + (o * extent + low) * bytes;
    std::vector<uint8_t> sums(static_cast<size_t>(halves ? (high - low) * wide : 0)), line(static_cast<size_t>(halves ? wide : 0));
    uint8_t* into = halves ? sums.data() : dst;
    if (!halves) std::memset(dst, 0, static_cast<size_t>((high - low) * wide));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = index[static_cast<size_t>(i)];
      if (at < low || at >= high) continue;
      const uint8_t* from = src + (o * count + i) * bytes;
      if (halves) {
        widen(line.data(), from, inner);
        from = line.data();
      }
      uint8_t* to = into + (at - low) * wide;
      add(to, to, from, inner);
    }
    if (halves) narrow(dst, into, (high - low) * inner);
  };
  parallel_for(outer * bands, band, outer * (count + extent) * bytes / 8 + 1);
}

void scatter(const Move& m) {
  const Dims& shape = m.in.shape;
  const int axis = static_cast<int>(m.in.attrs[0]);
  const int64_t extent = shape[axis], outer = product(shape, 0, axis), bytes = product(shape, axis + 1, shape.rank) * m.item;
  const std::vector<int64_t> index = indices(m, m.operands[1], extent);
  const auto count = static_cast<int64_t>(index.size());
  std::vector<uint8_t> copy;
  const uint8_t* src = contiguous(m.operands[2], &copy);
  copy_first(m);
  const int64_t bands = bands_of(count * bytes, extent);
  const auto band = [&](int64_t unit, int) {
    const int64_t o = unit / bands, low = extent * (unit % bands) / bands, high = extent * (unit % bands + 1) / bands;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = index[static_cast<size_t>(i)];
      if (at >= low && at < high) std::memcpy(m.dst + (o * extent + at) * bytes, src + (o * count + i) * bytes, static_cast<size_t>(bytes));
    }
  };
  parallel_for(outer * bands, band, outer * count * bytes / 8 + 1);
}

void gather_elements(const Move& m) {
  const Memory& a = m.operands[0];
  const Elements e(m, m.operands[1], static_cast<int>(m.in.attrs[0]), a.shape, a.strides, a.dtype);
  by_item(m.item, [&]<class T>(T) { e.each([&](int64_t at, int64_t offset) { std::memcpy(m.dst + at * int64_t{sizeof(T)}, a.data + offset, sizeof(T)); }); });
}

void scatter_elements(const Move& m) {
  const Elements e(m, m.operands[1], static_cast<int>(m.in.attrs[0]), m.in.shape, contiguous_strides(m.in.shape), m.in.dtype);
  std::vector<uint8_t> copy;
  const uint8_t* src = contiguous(m.operands[2], &copy);
  copy_first(m);
  by_item(m.item, [&]<class T>(T) { e.each([&](int64_t at, int64_t offset) { std::memcpy(m.dst + offset, src + at * int64_t{sizeof(T)}, sizeof(T)); }); });
}

void scatter_add_elements(const Move& m) {
  const Memory& a = m.operands[0];
  // Halves are summed in float32 and rounded once.
  const DType sum = compute_dtype(a.dtype);
  const int64_t item = item_size(sum), n = m.in.shape.size(), count = a.shape.size();
  const Elements e(m, m.operands[1], static_cast<int>(m.in.attrs[0]), m.in.shape, contiguous_strides(m.in.shape), sum);
  std::vector<uint8_t> copy, wide, sums;
  const uint8_t* src = contiguous(a, &copy);
  uint8_t* dst = m.dst;
  if (sum != a.dtype) {
    wide.resize(static_cast<size_t>(count * item));
    m.k.cast[int(a.dtype)][int(sum)](wide.data(), src, count);
    src = wide.data();
    sums.resize(static_cast<size_t>(n * item));
    dst = sums.data();
  }
  std::memset(dst, 0, static_cast<size_t>(n * item));
  const auto add = [&]<class T>(T) {
    e.each([&](int64_t at, int64_t offset) {
      T total, more;
      std::memcpy(&total, dst + offset, sizeof(T));
      std::memcpy(&more, src + at * int64_t{sizeof(T)}, sizeof(T));
      total = static_cast<T>(total + more);
      std::memcpy(dst + offset, &total, sizeof(T));
    });
  };
  if (sum == DType::kF32) add(float{});
  else if (sum == DType::kF64) add(double{});
  else by_item(m.item, add);  // unsigned: wraps
  if (sum != a.dtype) m.k.cast[int(sum)][int(a.dtype)](m.dst, dst, n);
}

}  // namespace dvm
