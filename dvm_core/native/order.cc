// ARGMAX, ARGMIN, SORT, ARGSORT, TOPK: what depends on the order of elements along an axis.
//
// Elements become unsigned keys in the same order: NaN above infinity, -0 equal to 0. A key and the element's position make one pair, so
// that no two pairs are equal and every way of sorting them gives the one stable order.
#include <cstring>

#include "move.h"
#include "optable.h"

namespace dvm {
namespace {

constexpr int64_t kRadixFrom = 2048;  // pairs; below, comparing is faster than counting

struct Wide {  // a pair for 64-bit elements
  uint64_t key;
  int64_t at;
  bool operator<(const Wide& o) const { return key != o.key ? key < o.key : at < o.at; }
};
struct Narrow {  // a pair for all others, in one word
  uint64_t bits;
  bool operator<(const Narrow& o) const { return bits < o.bits; }
};
uint64_t key_of(const Wide& p) { return p.key; }
uint64_t key_of(const Narrow& p) { return p.bits >> 32; }
int64_t position(const Wide& p) { return p.at; }
int64_t position(const Narrow& p) { return static_cast<int64_t>(p.bits & 0xffffffffu); }

// The key of an element of item_size(T) bytes.
template <class T>
auto ordered(T x) {
  using U = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  constexpr U top = U{1} << (8 * sizeof(U) - 1);
  if constexpr (std::is_floating_point_v<T>) {
    if (x != x) return static_cast<U>(~U{0});
    U u;
    x += T{0};  // -0 becomes 0
    std::memcpy(&u, &x, sizeof u);
    return static_cast<U>(u & top ? ~u : u | top);
  } else {
    return static_cast<U>(static_cast<U>(static_cast<std::conditional_t<sizeof(T) == 8, int64_t, int32_t>>(x)) ^ top);
  }
}

// Least significant byte first; bytes that all keys share cost one pass of counting.
template <class Pair>
void radix_sort(std::vector<Pair>* pairs, std::vector<Pair>* spare) {
  constexpr int bytes = std::is_same_v<Pair, Wide> ? 8 : 4;
  spare->resize(pairs->size());
  for (int b = 0; b < bytes; ++b) {
    size_t count[257] = {};
    for (const Pair& p : *pairs) ++count[(key_of(p) >> (8 * b) & 255) + 1];
    if (std::find(count, count + 257, pairs->size()) != count + 257) continue;
    for (int i = 1; i < 256; ++i) count[i] += count[i - 1];
    for (const Pair& p : *pairs) (*spare)[count[key_of(p) >> (8 * b) & 255]++] = p;
    pairs->swap(*spare);
  }
}

// The `wanted` first pairs among keys that come one by one: those before the last of the best so far are gathered, and cut back to the
// best when there are too many.
template <class Pair, class Make>
void select_first(std::vector<Pair>* pairs, int64_t n, int64_t wanted, Make&& make) {
  const size_t room = static_cast<size_t>(2 * wanted + 256);
  pairs->clear();
  bool full = false;
  Pair last{};
  const auto cut = [&] {
    std::nth_element(pairs->begin(), pairs->begin() + wanted - 1, pairs->end());
    pairs->resize(static_cast<size_t>(wanted));
    last = pairs->back();
    full = true;
  };
  for (int64_t i = 0; i < n; ++i) {
    const Pair p = make(i);
    if (full && !(p < last)) continue;
    pairs->push_back(p);
    if (pairs->size() == room) cut();
  }
  if (static_cast<int64_t>(pairs->size()) > wanted) cut();
  std::sort(pairs->begin(), pairs->end());
}

template <class Pair>
void order(std::vector<Pair>* pairs, std::vector<Pair>* spare) {
  if (static_cast<int64_t>(pairs->size()) >= kRadixFrom) radix_sort(pairs, spare);
  else std::sort(pairs->begin(), pairs->end());
}

// Elements in the form they are compared in: contiguous; halves as float32, bool as 0 and 1.
class Compared {
 public:
  Compared(const Move& m, const Memory& a) : dtype(a.dtype) {
    data = contiguous(a, &copy_);
    const DType to = dtype == DType::kF16 || dtype == DType::kBF16 ? DType::kF32 : dtype == DType::kBool ? DType::kU8 : dtype;
    if (to == dtype) return;
    const int64_t n = a.shape.size();
    cast_.resize(static_cast<size_t>(n * item_size(to)));
    m.k.cast[int(dtype)][int(to)](cast_.data(), data, n);
    data = cast_.data();
    dtype = to;
  }
  // fn(const T* elements)
  template <class F>
  void visit(F&& fn) const {
    switch (dtype) {
      case DType::kF32: return fn(reinterpret_cast<const float*>(data));
      case DType::kF64: return fn(reinterpret_cast<const double*>(data));
      case DType::kI8: return fn(reinterpret_cast<const int8_t*>(data));
      case DType::kU8: return fn(data);
      case DType::kI32: return fn(reinterpret_cast<const int32_t*>(data));
      default: return fn(reinterpret_cast<const int64_t*>(data));
    }
  }

  DType dtype;
  const uint8_t* data;

 private:
  std::vector<uint8_t> copy_, cast_;
};

// The position of `best` in a row; with NaN as the best, of the first NaN.
template <class T>
int64_t find(const T* row, int64_t n, T best) {
  int64_t i = 0;
  if (best != best)
    while (i < n && row[i] == row[i]) ++i;
  else
    while (i < n && row[i] != best) ++i;
  return i;
}

void write_index(uint8_t* dst, DType dtype, int64_t at, int64_t index) {
  const auto small = static_cast<int32_t>(index);
  if (dtype == DType::kI64) std::memcpy(dst + at * 8, &index, 8);
  else std::memcpy(dst + at * 4, &small, 4);
}

// [outer, extent, inner] around an axis.
struct Around {
  Around(const Dims& d, int axis) : outer(product(d, 0, axis)), extent(d[axis]), inner(product(d, axis + 1, d.rank)) {}
  int64_t outer, extent, inner;
};

// The position of the first extreme element; the first NaN wins over everything.
template <class T, bool Largest>
void extremes(const T* x, const Around& f, int64_t from, int64_t to, uint8_t* dst, DType out) {
  constexpr int64_t kSide = 256;
  T best[kSide];
  int64_t at[kSide];
  for (int64_t u = from; u < to;) {
    const int64_t o = u / f.inner, j = u % f.inner, n = std::min({kSide, f.inner - j, to - u});
    const T* line = x + o * f.extent * f.inner + j;
    for (int64_t c = 0; c < n; ++c) {
      best[c] = line[c];
      at[c] = 0;
    }
    for (int64_t i = 1; i < f.extent; ++i) {
      line += f.inner;
      for (int64_t c = 0; c < n; ++c) {
        const T v = line[c];
        const bool wins = ((Largest ? v > best[c] : v < best[c]) | (v != v)) & (best[c] == best[c]);
        best[c] = wins ? v : best[c];
        at[c] = wins ? i : at[c];
      }
    }
    for (int64_t c = 0; c < n; ++c) write_index(dst, out, u + c, at[c]);
    u += n;
  }
}

}  // namespace

void arg_extreme(const Move& m) {
  const Memory& a = m.operands[0];
  const Around f(a.shape, static_cast<int>(m.in.attrs[1]));
  const Compared x(m, a);
  const bool largest = m.in.op == Op::kARGMAX;
  in_pieces(f.outer * f.inner, a.shape.size() * item_size(a.dtype), [&](int64_t from, int64_t to) {
    x.visit([&]<class T>(const T* data) {
      if (f.inner == 1) {
        const ReduceRow extreme = m.k.reduce_row[int(largest ? Op::kMAX : Op::kMIN)][int(x.dtype)];
        for (int64_t u = from; u < to; ++u) {
          T best;
          extreme(&best, data + u * f.extent, 1, f.extent);
          write_index(m.dst, m.in.dtype, u, find(data + u * f.extent, f.extent, best));
        }
        return;
      }
      if (largest) extremes<T, true>(data, f, from, to, m.dst, m.in.dtype);
      else extremes<T, false>(data, f, from, to, m.dst, m.in.dtype);
    });
  });
}

void sort(const Move& m) {
  const Memory& a = m.operands[0];
  const int axis = static_cast<int>(m.in.attrs[0]);
  const bool topk = m.in.op == Op::kTOPK, descending = m.in.attrs[topk ? 2 : 1];
  const Around f(a.shape, axis);
  const int64_t wanted = topk ? m.in.attrs[1] : f.extent;
  const Compared x(m, a);
  std::vector<uint8_t> copy;
  const uint8_t* values = m.in.op == Op::kSORT ? contiguous(a, &copy) : nullptr;
  const auto fibres = [&]<class Pair, class T>(Pair, const T* data, int64_t from, int64_t to) {
    std::vector<Pair> pairs, spare;
    for (int64_t u = from; u < to; ++u) {
      const int64_t o = u / f.inner, j = u % f.inner, first = o * f.extent * f.inner + j;
      const auto make = [&](int64_t i) -> Pair {
        auto key = ordered(data[first + i * f.inner]);
        if (descending) key = ~key;
        if constexpr (std::is_same_v<Pair, Wide>) return {key, i};
        else return {static_cast<uint64_t>(key) << 32 | static_cast<uint32_t>(i)};
      };
      if (wanted > 0 && wanted < f.extent / 4) {
        select_first(&pairs, f.extent, wanted, make);
      } else {
        pairs.resize(static_cast<size_t>(f.extent));
        for (int64_t i = 0; i < f.extent; ++i) pairs[static_cast<size_t>(i)] = make(i);
        order(&pairs, &spare);
      }
      for (int64_t i = 0; i < wanted; ++i) {
        const int64_t to_at = (o * wanted + i) * f.inner + j, index = position(pairs[static_cast<size_t>(i)]);
        if (values) std::memcpy(m.dst + to_at * m.item, values + (first + index * f.inner) * m.item, static_cast<size_t>(m.item));
        else write_index(m.dst, m.in.dtype, to_at, index);
      }
    }
  };
  in_pieces(f.outer * f.inner, a.shape.size() * 64, [&](int64_t from, int64_t to) {
    x.visit([&]<class T>(const T* data) {
      // A position of 32 bits fits beside a key of 32 bits.
      if constexpr (sizeof(T) < 8) {
        if (f.extent <= int64_t{1} << 32) return fibres(Narrow{}, data, from, to);
      }
      fibres(Wide{}, data, from, to);
    });
  });
}

}  // namespace dvm
