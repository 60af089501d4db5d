// The tile instruction set: straight-line code for one tile of rows x cols elements. All words have 64 bits; a zero head ends the code.
//
//   head    63         48 47              22 21   19 18  17 16   13 12    9 8      5 4     1 0
//          +-------------+------------------+-------+------+-------+-------+--------+-------+---+
//          |   id (16)   |     dst (26)     |form(3)|span 2|dtype 4|from 4 | len(4) | flags | 1 |
//          +-------------+------------------+-------+------+-------+-------+--------+-------+---+
//   word 1 | 12 bits: 0  |        b (26)           |           a (26)           |     word 2: c (26)
//
//   id      an elementwise instruction has the opcode of the tensor instruction it computes; what exists in tiles only starts at 0x80
//   operand bit 25 clear: UB address / 16 · bit 25 set: number of a global slot (memory outside the UB, found in the area's slot table)
//   form    which side of a binary instruction is narrow, see Form
//   span    how many elements are made: full = rows x cols · row = one per row · cols = one row · one
//   dtype   of the operands of the computation; from: dtype a cast reads
//   len     words of the instruction, the head included
//   flags   bit 0: 1, so that no head is zero · bit 1: the last word is a sync word
//
// A strip stands before instructions that are computed together, block by block. Among them an operand may have bits 25 and 24 set: `v0`
// is the result of the instruction before, in vector registers; `v1`, `v2` ... are blocks at the side, for results that are wanted later.
//
// The names are those of DVM's disassembler. Loads and stores that would copy whole contiguous tiles do not exist here: the operand is
// bound to global memory (`g<slot>` in the text). Sync flags do not exist either: one core runs its tile in order.
//
// On a simulated NPU both exist: `load` and `store` are copies, and the last word of an instruction that takes part says how the pipes
// (load, simd, store) wait for each other:
//
//   sync    48        47      36 35      24 23      12 11       0
//          +------------+----------+----------+----------+----------+     each 12 bits: for the other pipe p = 0, 1, 2
//          | barrier (1)| back_set | back_wait|   set    |   wait   |     4 bits: valid (1), event (3)
//          +------------+----------+----------+----------+----------+
//
//   wait and set: within a tile. back_wait: not in a core's first tile; back_set: not in its last. barrier: of the simd pipe with itself.
#pragma once
#include <cstdint>

namespace dvm {

// X(id, enum, text, layout, meaning)    layout: what the operand words hold
#define DVM_TILE_ISA(X)                                                                                                            \
  X(0x01, Add, "Add", binary, "d = a + b")                                                                                         \
  X(0x02, Sub, "Sub", binary, "d = a - b")                                                                                         \
  X(0x03, Mul, "Mul", binary, "d = a * b")                                                                                         \
  X(0x04, Div, "Div", binary, "d = a / b")                                                                                         \
  X(0x05, Power, "Power", binary, "d = a ** b")                                                                                    \
  X(0x06, Maximum, "Maximum", binary, "d = max(a, b)")                                                                             \
  X(0x07, Minimum, "Minimum", binary, "d = min(a, b)")                                                                             \
  X(0x08, Equal, "Compare", binary, "d = a == b")                                                                                  \
  X(0x09, NotEqual, "Compare", binary, "d = a != b")                                                                               \
  X(0x0a, Less, "Compare", binary, "d = a < b")                                                                                    \
  X(0x0b, LessEqual, "Compare", binary, "d = a <= b")                                                                              \
  X(0x0c, Greater, "Compare", binary, "d = a > b")                                                                                 \
  X(0x0d, GreaterEqual, "Compare", binary, "d = a >= b")                                                                           \
  X(0x0e, LogicalAnd, "LogicalAnd", binary, "d = a and b")                                                                         \
  X(0x0f, LogicalOr, "LogicalOr", binary, "d = a or b")                                                                            \
  X(0x10, Neg, "Neg", unary, "d = -a")                                                                                             \
  X(0x11, Abs, "Abs", unary, "d = |a|")                                                                                            \
  X(0x12, Exp, "Exp", unary, "d = e ** a")                                                                                         \
  X(0x13, Log, "Log", unary, "d = ln a")                                                                                           \
  X(0x14, Sqrt, "Sqrt", unary, "d = a ** 0.5")                                                                                     \
  X(0x15, Rsqrt, "Rsqrt", unary, "d = 1 / sqrt(a)")                                                                                \
  X(0x16, Reciprocal, "Reciprocal", unary, "d = 1 / a")                                                                            \
  X(0x17, Tanh, "Tanh", unary, "d = tanh a")                                                                                       \
  X(0x18, Erf, "Erf", unary, "d = erf a")                                                                                          \
  X(0x19, Sigmoid, "Sigmoid", unary, "d = 1 / (1 + e ** -a)")                                                                      \
  X(0x1a, Floor, "Floor", unary, "d = floor a")                                                                                    \
  X(0x1b, Ceil, "Ceil", unary, "d = ceil a")                                                                                       \
  X(0x1c, Round, "Round", unary, "d = a rounded, halves to even")                                                                  \
  X(0x1d, Trunc, "Trunc", unary, "d = a towards zero")                                                                             \
  X(0x1e, IsFinite, "IsFinite", unary, "d = a is finite")                                                                          \
  X(0x1f, LogicalNot, "LogicalNot", unary, "d = not a")                                                                            \
  X(0x20, Sin, "Sin", unary, "d = sin a")                                                                                          \
  X(0x21, Cos, "Cos", unary, "d = cos a")                                                                                          \
  X(0x22, Copy, "Copy", unary, "d = a")                                                                                            \
  X(0x23, Cast, "Cast", unary, "d = a in another dtype; the text has the dtype in the name")                                       \
  X(0x24, Log1p, "Log1p", unary, "d = ln(1 + a)")                                                                                  \
  X(0x25, Expm1, "Expm1", unary, "d = e ** a - 1")                                                                                 \
  X(0x26, Tan, "Tan", unary, "d = tan a")                                                                                          \
  X(0x27, Atan, "Atan", unary, "d = arctan a")                                                                                     \
  X(0x28, Select, "Select", select, "d = a ? b : c")                                                                               \
  X(0x2a, Sign, "Sign", unary, "d = sign of a")                                                                                    \
  X(0x2b, IsNan, "IsNan", unary, "d = a is NaN")                                                                                   \
  X(0x2c, IsInf, "IsInf", unary, "d = a is infinite")                                                                              \
  X(0x2d, Fmod, "Fmod", binary, "d = a - b * trunc(a / b)")                                                                        \
  X(0x2e, Remainder, "Remainder", binary, "d = a - b * floor(a / b)")                                                              \
  X(0x2f, BitNot, "BitNot", unary, "d = ~a")                                                                                       \
  X(0x30, SumX, "SumX", unary, "d[r] = sum of a[r, :]")                                                                            \
  X(0x31, MaxX, "MaxX", unary, "d[r] = max of a[r, :]")                                                                            \
  X(0x32, MinX, "MinX", unary, "d[r] = min of a[r, :]")                                                                            \
  X(0x34, ProdX, "ProdX", unary, "d[r] = product of a[r, :]")                                                                      \
  X(0x38, MatMul, "MatMul", matmul, "d = rows of a product; a: its number; b: its left operand if that is the tile")               \
  X(0x39, Conv2D, "Conv2D", matmul, "the same of a convolution; a: its number")                                                    \
  X(0x3a, Conv2DWeight, "Conv2DWeight", matmul, "the same of the gradient of its weight")                                          \
  X(0x52, BitAnd, "BitAnd", binary, "d = a & b")                                                                                   \
  X(0x53, BitOr, "BitOr", binary, "d = a | b")                                                                                     \
  X(0x54, BitXor, "BitXor", binary, "d = a ^ b")                                                                                   \
  X(0x55, ShiftLeft, "ShiftLeft", binary, "d = a << b")                                                                            \
  X(0x56, ShiftRight, "ShiftRight", binary, "d = a >> b")                                                                          \
  X(0x5f, Random, "Random", random, "d = random numbers by the elements' place in the space; b: instruction with seed and offset") \
  X(0x80, LoadView, "load_view", unary, "d = a, read through the strides of global slot a")                                        \
  X(0x81, StoreView, "store_view", unary, "global slot d = a, when the tile is narrower than the rows in memory")                  \
  X(0x82, BroadcastX, "BroadcastX", unary, "d[r, :] = a[r]")                                                                       \
  X(0x83, BroadcastY, "BroadcastY", unary, "d[:, c] = a[c]")                                                                       \
  X(0x84, BroadcastS, "BroadcastS", unary, "d[:, :] = a")                                                                          \
  X(0x85, Load, "load", unary, "d = a, a run of memory copied into the UB (simulated devices)")                                    \
  X(0x86, Store, "store", unary, "global slot d = a, a run of the UB copied to memory (simulated devices)")                        \
  X(0x88, Narrow, "narrow", hook, "the tile shrinks to the columns that mask a shows, and one; b: the value that hides")           \
  X(0x89, Tail, "tail", hook, "whole tile anew if the columns left out of a are not 0")                                            \
  X(0x8a, Strip, "strip", strip, "the next a instructions go over the tile together; b: number of the strip")                      \
  X(0x90, SumXJoin, "SumX_join", join, "partial sums of a long row, joined after the tiles; b: number of the join")                \
  X(0x91, MaxXJoin, "MaxX_join", join, "the same for max")                                                                         \
  X(0x92, MinXJoin, "MinX_join", join, "the same for min")                                                                         \
  X(0x94, ProdXJoin, "ProdX_join", join, "the same for products")                                                                  \
  X(0x98, SumY, "SumY", join, "partial sums over a block of rows, joined after the tiles; b: number of the join")                  \
  X(0x99, MaxY, "MaxY", join, "the same for max")                                                                                  \
  X(0x9a, MinY, "MinY", join, "the same for min")                                                                                  \
  X(0x9c, ProdY, "ProdY", join, "the same for products")                                                                           \
  X(0xa0, HookStats, "hook_stats", hook, "statistics of a; b: number of the hook")                                                 \
  X(0xa1, HookCheck, "hook_check", hook, "NaN and Inf bits of a; b: number of the hook")

enum class Tile : uint16_t {
  kEnd = 0,
#define X(id, name, text, layout, meaning) k##name = id,
  DVM_TILE_ISA(X)
#undef X
};
inline constexpr int kTileIds = 256;

// Binary instructions: t = as wide as the result, s = one value, x = one value per row.
enum class Form : uint8_t { kTT = 0, kTS = 1, kST = 2, kTX = 3, kXT = 4 };
enum class Span : uint8_t { kFull = 0, kRow = 1, kCols = 2, kOne = 3 };

// What runs side by side on an NPU core, each in its order. A product belongs to the cube cores; its vector core takes it as a load.
enum class Pipe : uint8_t { kLoad = 0, kSimd = 1, kStore = 2 };
inline constexpr int kPipes = 3;
constexpr Pipe pipe_of(Tile id) {
  switch (id) {
    case Tile::kLoad:
    case Tile::kLoadView: return Pipe::kLoad;
    case Tile::kStore:
    case Tile::kStoreView:
    case Tile::kSumXJoin:
    case Tile::kMaxXJoin:
    case Tile::kMinXJoin:
    case Tile::kProdXJoin:
    case Tile::kProdY:
    case Tile::kSumY:
    case Tile::kMaxY:
    case Tile::kMinY: return Pipe::kStore;
    default: return Pipe::kSimd;
  }
}

// Fields of a sync word.
enum class Sync : uint8_t { kWait = 0, kSet = 1, kBackWait = 2, kBackSet = 3 };
inline constexpr uint64_t kBarrier = 1ull << 48;
constexpr uint64_t sync_bits(Sync field, Pipe other, int event) { return uint64_t(8 | (event & 7)) << (12 * int(field) + 4 * int(other)); }
// The event, or -1 if the instruction does not take part.
constexpr int sync_event(uint64_t word, Sync field, Pipe other) {
  const int bits = int(word >> (12 * int(field) + 4 * int(other))) & 15;
  return bits & 8 ? bits & 7 : -1;
}

inline constexpr uint32_t kGlobal = 1u << 25;      // operand is a slot number
inline constexpr uint32_t kVectors = kGlobal | 1u << 24;  // operand is v0, v1 ... of a strip
inline constexpr uint32_t kOperandMask = (1u << 26) - 1;
constexpr bool is_global(uint32_t operand) { return (operand & kVectors) == kGlobal; }
inline constexpr int64_t kUbUnit = 16;             // bytes an operand's UB address counts in

struct Head {
  Tile id;
  uint32_t dst;
  Form form;
  Span span;
  uint8_t dtype, from, len;
  bool synced = false;  // its last word is a sync word
};

constexpr uint64_t pack_head(const Head& h) {
  return uint64_t(h.id) << 48 | uint64_t(h.dst & kOperandMask) << 22 | uint64_t(h.form) << 19 | uint64_t(h.span) << 17 | uint64_t(h.dtype & 15) << 13 |
         uint64_t(h.from & 15) << 9 | uint64_t(h.len & 15) << 5 | uint64_t(h.synced) << 1 | 1;
}
constexpr Tile head_id(uint64_t w) { return static_cast<Tile>(w >> 48); }
constexpr uint32_t head_dst(uint64_t w) { return uint32_t(w >> 22) & kOperandMask; }
constexpr Form head_form(uint64_t w) { return static_cast<Form>(w >> 19 & 7); }
constexpr Span head_span(uint64_t w) { return static_cast<Span>(w >> 17 & 3); }
constexpr int head_dtype(uint64_t w) { return int(w >> 13 & 15); }
constexpr int head_from(uint64_t w) { return int(w >> 9 & 15); }
constexpr int head_len(uint64_t w) { return int(w >> 5 & 15); }
constexpr bool head_synced(uint64_t w) { return w >> 1 & 1; }
constexpr uint32_t operand_a(uint64_t w) { return uint32_t(w) & kOperandMask; }
constexpr uint32_t operand_b(uint64_t w) { return uint32_t(w >> 26) & kOperandMask; }

}  // namespace dvm
