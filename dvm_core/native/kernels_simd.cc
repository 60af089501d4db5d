// The kernel table of one SIMD level (DVM_LEVEL). Compiled once per level; the table is a constant, so that nothing compiled for a level
// runs before kernels.cc has chosen it.
#include "kernels_cast.h"
#include "kernels_elementwise.h"
#include "kernels_gemm.h"
#include "kernels_move.h"
#include "kernels_reduce.h"
#include "kernels_stats.h"

#define DVM_PASTE_(a, b) a##b
#define DVM_PASTE(a, b) DVM_PASTE_(a, b)
#define DVM_TEXT_(a) #a
#define DVM_TEXT(a) DVM_TEXT_(a)

namespace dvm {
namespace DVM_LEVEL {

// A C++ type with its code.
template <class T, DType Code>
struct As {};
using F32 = As<float, DType::kF32>;
using F64 = As<double, DType::kF64>;
using I8 = As<int8_t, DType::kI8>;
using U8 = As<uint8_t, DType::kU8>;
using I32 = As<int32_t, DType::kI32>;
using I64 = As<int64_t, DType::kI64>;
using B8 = As<uint8_t, DType::kBool>;
// Integers for the ops that wrap.
using WI8 = As<uint8_t, DType::kI8>;
using WI32 = As<uint32_t, DType::kI32>;
using WI64 = As<uint64_t, DType::kI64>;

struct Builder {
  Kernels k{};

  template <class F, class T, DType Code>
  constexpr void unary_one(Op op, As<T, Code>) {
    k.unary[int(op)][int(Code)] = map_unary<F, T>;
  }
  template <class F, class T, DType Code>
  constexpr void binary_one(Op op, As<T, Code>) {
    k.binary[int(op)][int(Code)] = map_binary<F, T>;
    k.binary_vs[int(op)][int(Code)] = map_rows_vs<F, T>;
    k.binary_sv[int(op)][int(Code)] = map_rows_sv<F, T>;
  }
  template <class F, class T, DType Code>
  constexpr void reduce_one(Op op, As<T, Code>) {
    k.reduce_row[int(op)][int(Code)] = reduce_rows<F, T>;
    k.reduce_col[int(op)][int(Code)] = reduce_cols<F, T>;
  }
  template <class From, DType FromCode, class... To, DType... ToCode>
  constexpr void cast_from(As<From, FromCode>, As<To, ToCode>...) {
    ((k.cast[int(FromCode)][int(ToCode)] = cast<From, To>), ...);
  }

  template <class F, class... Ts>
  constexpr void unary(Op op) {
    (unary_one<F>(op, Ts{}), ...);
  }
  template <class F, class... Ts>
  constexpr void binary(Op op) {
    (binary_one<F>(op, Ts{}), ...);
  }
  template <class F, class... Ts>
  constexpr void reduce(Op op) {
    (reduce_one<F>(op, Ts{}), ...);
  }
};

constexpr void add_arithmetic(Builder& b) {
  b.binary<Add, F32, F64, WI8, U8, WI32, WI64>(Op::kADD);
  b.binary<Sub, F32, F64, WI8, U8, WI32, WI64>(Op::kSUB);
  b.binary<Mul, F32, F64, WI8, U8, WI32, WI64>(Op::kMUL);
  b.binary<Div, F32, F64, I8, U8, I32, I64>(Op::kDIV);
  b.binary<Pow, F32, F64, I8, U8, I32, I64>(Op::kPOW);
  b.k.binary_vs[int(Op::kPOW)][int(DType::kF32)] = map_pow_rows<float>;
  b.k.binary_vs[int(Op::kPOW)][int(DType::kF64)] = map_pow_rows<double>;
  b.binary<Maximum, F32, F64, I8, U8, I32, I64>(Op::kMAXIMUM);
  b.binary<Minimum, F32, F64, I8, U8, I32, I64>(Op::kMINIMUM);
  b.binary<Equal, F32, F64, I8, U8, I32, I64, B8>(Op::kEQUAL);
  b.binary<NotEqual, F32, F64, I8, U8, I32, I64, B8>(Op::kNOT_EQUAL);
  b.binary<Less, F32, F64, I8, U8, I32, I64, B8>(Op::kLESS);
  b.binary<LessEqual, F32, F64, I8, U8, I32, I64, B8>(Op::kLESS_EQUAL);
  b.binary<Greater, F32, F64, I8, U8, I32, I64, B8>(Op::kGREATER);
  b.binary<GreaterEqual, F32, F64, I8, U8, I32, I64, B8>(Op::kGREATER_EQUAL);
  // Bool arithmetic as NumPy: + and max are `or`, * and min are `and`; there is no bool subtraction or division.
  b.binary<LogicalOr, B8>(Op::kADD);
  b.binary<LogicalAnd, B8>(Op::kMUL);
  b.binary<LogicalOr, B8>(Op::kMAXIMUM);
  b.binary<LogicalAnd, B8>(Op::kMINIMUM);
  b.binary<LogicalAnd, B8>(Op::kLOGICAL_AND);
  b.binary<LogicalOr, B8>(Op::kLOGICAL_OR);
}

constexpr void add_unary(Builder& b) {
  b.unary<Neg, F32, F64, WI8, U8, WI32, WI64>(Op::kNEG);
  b.unary<Abs, F32, F64, I8, U8, I32, I64>(Op::kABS);
  b.unary<Exp, F32, F64>(Op::kEXP);
  b.unary<Log, F32, F64>(Op::kLOG);
  b.unary<Sqrt, F32, F64>(Op::kSQRT);
  b.unary<Rsqrt, F32, F64>(Op::kRSQRT);
  b.unary<Reciprocal, F32, F64>(Op::kRECIPROCAL);
  b.unary<Tanh, F32, F64>(Op::kTANH);
  b.unary<Erf, F32, F64>(Op::kERF);
  b.unary<Sigmoid, F32, F64>(Op::kSIGMOID);
  b.unary<Floor, F32, F64>(Op::kFLOOR);
  b.unary<Ceil, F32, F64>(Op::kCEIL);
  b.unary<Round, F32, F64>(Op::kROUND);
  b.unary<Trunc, F32, F64>(Op::kTRUNC);
  b.unary<IsFinite, F32, F64>(Op::kIS_FINITE);
  b.unary<True, I8, U8, I32, I64, B8>(Op::kIS_FINITE);
  b.unary<LogicalNot, B8>(Op::kLOGICAL_NOT);
  b.unary<Sin, F64>(Op::kSIN);
  b.unary<Cos, F64>(Op::kCOS);
  b.k.unary[int(Op::kSIN)][int(DType::kF32)] = map_trig<0>;
  b.k.unary[int(Op::kCOS)][int(DType::kF32)] = map_trig<1>;

  // By item size: COPY of every dtype, and the roundings of integers, which are integers already.
  constexpr Unary copies[] = {nullptr, copy<uint8_t>, copy<uint16_t>, nullptr, copy<uint32_t>, nullptr, nullptr, nullptr, copy<uint64_t>};
  for (int t = 1; t < kDTypes; ++t) {
    b.k.unary[int(Op::kCOPY)][t] = copies[item_size(DType(t))];
    b.k.cast[t][t] = copies[item_size(DType(t))];
  }
  constexpr Op roundings[] = {Op::kFLOOR, Op::kCEIL, Op::kROUND, Op::kTRUNC};
  constexpr DType integers[] = {DType::kI8, DType::kU8, DType::kI32, DType::kI64};
  for (Op op : roundings)
    for (DType t : integers) b.k.unary[int(op)][int(t)] = copies[item_size(t)];
}

constexpr void add_casts(Builder& b) {
  using Flag = As<Bool, DType::kBool>;
  using F16 = As<Half, DType::kF16>;
  using BF16 = As<Brain, DType::kBF16>;
  b.cast_from(F32{}, F64{}, I8{}, U8{}, I32{}, I64{}, Flag{}, F16{}, BF16{});
  b.cast_from(F64{}, F32{}, I8{}, U8{}, I32{}, I64{}, Flag{});
  b.cast_from(I8{}, F32{}, F64{}, U8{}, I32{}, I64{}, Flag{});
  b.cast_from(U8{}, F32{}, F64{}, I8{}, I32{}, I64{}, Flag{});
  b.cast_from(I32{}, F32{}, F64{}, I8{}, U8{}, I64{}, Flag{});
  b.cast_from(I64{}, F32{}, F64{}, I8{}, U8{}, I32{}, Flag{});
  b.cast_from(Flag{}, F32{}, F64{}, I8{}, U8{}, I32{}, I64{});
  b.cast_from(F16{}, F32{});
  b.cast_from(BF16{}, F32{});
}

constexpr void add_reductions(Builder& b) {
  b.reduce<Add, F32, F64, WI8, U8, WI32, WI64>(Op::kSUM);
  b.reduce<Maximum, F32, F64, I8, U8, I32, I64>(Op::kMAX);
  b.reduce<Minimum, F32, F64, I8, U8, I32, I64>(Op::kMIN);
  b.reduce<Any, B8>(Op::kSUM);
  b.reduce<Any, B8>(Op::kMAX);
  b.reduce<All, B8>(Op::kMIN);
}

constexpr void add_rest(Builder& b) {
  constexpr Select selects[] = {nullptr, select<uint8_t>, select<uint16_t>, nullptr, select<uint32_t>, nullptr, nullptr, nullptr, select<uint64_t>};
  for (int t = 1; t < kDTypes; ++t) {
    b.k.select[t] = selects[item_size(DType(t))];
    b.k.check[t] = check_nothing;
  }
  b.k.check[int(DType::kF32)] = check<float>;
  b.k.check[int(DType::kF64)] = check<double>;
  b.k.check[int(DType::kF16)] = check<Half>;
  b.k.check[int(DType::kBF16)] = check<Brain>;
  b.k.stats[int(DType::kF32)] = stats<float, float>;
  b.k.stats[int(DType::kF16)] = stats<Half, float>;
  b.k.stats[int(DType::kBF16)] = stats<Brain, float>;
  b.k.stats[int(DType::kF64)] = stats<double, double>;
  b.k.stats[int(DType::kBool)] = stats<Bool, double>;
  b.k.stats[int(DType::kI8)] = stats<int8_t, double>;
  b.k.stats[int(DType::kU8)] = stats<uint8_t, double>;
  b.k.stats[int(DType::kI32)] = stats<int32_t, double>;
  b.k.stats[int(DType::kI64)] = stats<int64_t, double>;
  b.k.copy_in = copy_in;
  b.k.copy_out = copy_out;
  b.k.fill = fill;
  b.k.packed_b_bytes = packed_b_bytes;
  b.k.pack_b = pack_b;
  b.k.gemm = gemm;
  b.k.gemm_generic = gemm_generic;
}

constexpr Kernels build() {
  Builder b;
  b.k.level = DVM_TEXT(DVM_LEVEL);
  add_arithmetic(b);
  add_unary(b);
  add_casts(b);
  add_reductions(b);
  add_rest(b);
  return b.k;
}

}  // namespace DVM_LEVEL

extern const Kernels DVM_PASTE(kernels_table_, DVM_LEVEL);
constinit const Kernels DVM_PASTE(kernels_table_, DVM_LEVEL) = DVM_LEVEL::build();

}  // namespace dvm
