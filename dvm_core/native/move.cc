#include "move.h"

#include <cstring>
#include <utility>

#include "interp.h"
#include "optable.h"

namespace dvm {
namespace {

void concat(const Move& m) {
  const int axis = static_cast<int>(m.in.attrs[0]);
  const int64_t outer = product(m.in.shape, 0, axis), line = product(m.in.shape, axis, m.in.shape.rank) * m.item;
  uint8_t* dst = m.dst;
  for (const Memory& a : m.operands) {
    if (a.shape.size() == 0) continue;
    const Rows rows(a, axis);
    const int64_t width = rows.width * m.item;
    const bool run = is_contiguous(a.shape, a.strides);
    in_pieces(outer, outer * width, [&](int64_t from, int64_t to) {
      if (run) m.k.copy_out(dst + from * line, a.data + from * width, to - from, rows.width, line, m.item, m.item);
      else
        for (int64_t r = from; r < to; ++r) rows.read(dst + r * line, r, 1);
    });
    dst += rows.width * m.item;
  }
}

// The operand's elements to start + step * i along every axis of the result; start_step(axis): both, in elements.
template <class F>
void put(const Move& m, F&& start_step) {
  const Memory& a = m.operands[0];
  const int rank = a.shape.rank;
  if (a.shape.size() == 0) return;
  std::vector<uint8_t> copy;
  const uint8_t* src = contiguous(a, &copy);
  const Dims strides = contiguous_strides(m.in.shape);
  uint8_t* dst = m.dst;
  for (int x = 0; x < rank; ++x) dst += start_step(x).first * strides[x] * m.item;
  const auto step = [&](int x) { return x < 0 || a.shape[x] == 1 ? 0 : start_step(x).second * strides[x] * m.item; };
  // The last two axes in one copy, the others by counting.
  const int64_t cols = rank > 0 ? a.shape[rank - 1] : 1, rows = rank > 1 ? a.shape[rank - 2] : 1, blocks = a.shape.size() / (rows * cols);
  in_pieces(blocks, a.shape.size() * m.item, [&](int64_t from, int64_t to) {
    for (int64_t b = from; b < to; ++b) {
      int64_t offset = 0, left = b;
      for (int x = rank - 3; x >= 0; --x) {
        offset += left % a.shape[x] * step(x);
        left /= a.shape[x];
      }
      m.k.copy_out(dst + offset, src + b * rows * cols * m.item, rows, cols, step(rank - 2), step(rank - 1), m.item);
    }
  });
}

void unslice(const Move& m) {
  std::memset(m.dst, 0, static_cast<size_t>(m.in.shape.size() * m.item));
  put(m, [&](int x) { return std::pair{m.in.attrs[static_cast<size_t>(2 * x)], m.in.attrs[static_cast<size_t>(2 * x + 1)]}; });
}

void pad(const Move& m) {
  Cell value;
  write_scalar(value.bytes, m.in.dtype, m.in.imms.at(0));
  const int64_t n = m.in.shape.size();
  in_pieces(n, n * m.item, [&](int64_t from, int64_t to) { m.k.fill(m.dst + from * m.item, value.bytes, to - from, m.item); });
  put(m, [&](int x) { return std::pair{m.in.attrs[static_cast<size_t>(x)], int64_t{1}}; });
}

void one_hot(const Move& m) {
  const int64_t depth = m.in.shape[m.in.shape.rank - 1], count = m.in.shape.size() / depth;
  Cell on, off;
  write_scalar(on.bytes, m.in.dtype, m.in.imms.at(0));
  write_scalar(off.bytes, m.in.dtype, m.in.imms.at(1));
  std::vector<uint8_t> copy;
  const uint8_t* data = contiguous(m.operands[0], &copy);
  std::vector<int64_t> index(static_cast<size_t>(count));
  m.k.cast[int(m.operands[0].dtype)][int(DType::kI64)](index.data(), data, count);
  in_pieces(count, count * depth * m.item, [&](int64_t from, int64_t to) {
    m.k.fill(m.dst + from * depth * m.item, off.bytes, (to - from) * depth, m.item);
    for (int64_t i = from; i < to; ++i) {
      const int64_t at = index[static_cast<size_t>(i)];
      if (at >= 0 && at < depth) std::memcpy(m.dst + (i * depth + at) * m.item, on.bytes, static_cast<size_t>(m.item));
    }
  });
}

void iota(const Move& m) {
  const int axis = static_cast<int>(m.in.attrs[0]);
  const int64_t extent = m.in.shape[axis], outer = product(m.in.shape, 0, axis), inner = product(m.in.shape, axis + 1, m.in.shape.rank);
  const auto plane = static_cast<size_t>(extent * inner * m.item);
  for (int64_t i = 0; i < extent; ++i) {
    Cell value;
    Imm number;
    number.i = i;
    number.is_int = true;
    write_scalar(value.bytes, m.in.dtype, number);
    m.k.fill(m.dst + i * inner * m.item, value.bytes, inner, m.item);
  }
  for (int64_t o = 1; o < outer; ++o) std::memcpy(m.dst + static_cast<size_t>(o) * plane, m.dst, plane);
}

void pool(const Move& m) {
  std::vector<uint8_t> copies[2];
  const void* data[2] = {};
  for (size_t o = 0; o < m.operands.size(); ++o) data[o] = contiguous(m.operands[o], &copies[o]);
  run_pool(m.in, data[0], data[1], m.operands.back().shape, m.dst);
}

// A reduction or product over no elements.
void identity(const Move& m) {
  Cell value;
  Imm nan;
  nan.f = __builtin_nan("");
  if (m.in.op == Op::kMEAN) write_scalar(value.bytes, m.in.dtype, nan);
  else write_identity(value.bytes, m.in.dtype, m.in.op);
  m.k.fill(m.dst, value.bytes, m.in.shape.size(), m.item);
}

}  // namespace

void run_move(const AreaCode& area, const ProgramCode& code, void* const* base) {
  const Instr& in = code.instrs[static_cast<size_t>(area.move)];
  Move m{in, {}, static_cast<uint8_t*>(base[area.operands.back()]), kernels(), item_size(in.dtype)};
  for (size_t o = 0; o + 1 < area.operands.size(); ++o) {
    const int32_t value = in.operands[o];
    m.operands.push_back({static_cast<uint8_t*>(base[area.operands[o]]), dtype_of(code, value), shape_of(code, value), area.operand_strides[o]});
  }
  switch (in.op) {
    case Op::kPAD: return pad(m);
    case Op::kCUMSUM: return cumsum(m);
    case Op::kGATHER_ELEMENTS: return gather_elements(m);
    case Op::kSCATTER: return scatter(m);
    case Op::kSCATTER_ELEMENTS: return scatter_elements(m);
    case Op::kSCATTER_ADD_ELEMENTS: return scatter_add_elements(m);
    case Op::kARGMAX:
    case Op::kARGMIN: return arg_extreme(m);
    case Op::kSORT:
    case Op::kARGSORT:
    case Op::kTOPK: return sort(m);
    case Op::kGATHER: return gather(m);
    case Op::kSCATTER_ADD: return scatter_add(m);
    case Op::kCONCAT: return concat(m);
    case Op::kUNSLICE: return unslice(m);
    case Op::kONE_HOT: return one_hot(m);
    case Op::kIOTA: return iota(m);
    case Op::kMAX_POOL2D:
    case Op::kMAX_POOL2D_GRAD:
    case Op::kAVG_POOL2D:
    case Op::kAVG_POOL2D_GRAD: return pool(m);
    default: return identity(m);
  }
}

}  // namespace dvm
