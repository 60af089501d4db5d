// The kernel table of one SIMD level (DVM_LEVEL). Compiled once per level; the table is a constant, so that nothing compiled for a level
// runs before kernels.cc has chosen it.
#include "kernels_cast.h"
#include "kernels_elementwise.h"
#include "kernels_gemm.h"
#include "kernels_half.h"
#include "kernels_integer.h"
#include "kernels_move.h"
#include "kernels_planes.h"
#include "kernels_random.h"
#include "kernels_reduce.h"
#include "kernels_stats.h"
#include "kernels_window.h"

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
using Flag = As<Bool, DType::kBool>;  // in casts
using F16 = As<Half, DType::kF16>;
using BF16 = As<Brain, DType::kBF16>;
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
  constexpr Op exchangeable[] = {Op::kADD, Op::kMUL};
  constexpr DType floats[] = {DType::kF32, DType::kF64};
  for (Op op : exchangeable)  // one value comes first, on either side: of two NaNs it stays
    for (DType t : floats) b.k.binary_sv[int(op)][int(t)] = b.k.binary_vs[int(op)][int(t)];
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
  b.binary<Fmod, F32, F64, I8, U8, I32, I64>(Op::kFMOD);
  b.binary<Remainder, F32, F64, I8, U8, I32, I64>(Op::kREMAINDER);
  constexpr int fmod = int(Op::kFMOD), remainder = int(Op::kREMAINDER), f32 = int(DType::kF32);
  b.k.binary[fmod][f32] = modulo<false>;
  b.k.binary_vs[fmod][f32] = modulo_rows<false, false>;
  b.k.binary_sv[fmod][f32] = modulo_rows<false, true>;
  b.k.binary[remainder][f32] = modulo<true>;
  b.k.binary_vs[remainder][f32] = modulo_rows<true, false>;
  b.k.binary_sv[remainder][f32] = modulo_rows<true, true>;
  b.binary<BitAnd, I8, U8, I32, I64>(Op::kBIT_AND);
  b.binary<BitOr, I8, U8, I32, I64>(Op::kBIT_OR);
  b.binary<BitXor, I8, U8, I32, I64>(Op::kBIT_XOR);
  b.binary<LogicalAnd, B8>(Op::kBIT_AND);
  b.binary<LogicalOr, B8>(Op::kBIT_OR);
  b.binary<LogicalXor, B8>(Op::kBIT_XOR);
  b.binary<ShiftLeft, I8, U8, I32, I64>(Op::kSHIFT_LEFT);
  b.binary<ShiftRight, I8, U8, I32, I64>(Op::kSHIFT_RIGHT);
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
  b.unary<Log1p, F32, F64>(Op::kLOG1P);
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
  b.unary<Expm1, F32, F64>(Op::kEXPM1);
  b.unary<Atan, F32, F64>(Op::kATAN);
  b.unary<Sign, F32, F64, I8, U8, I32, I64>(Op::kSIGN);
  b.unary<IsNan, F32, F64>(Op::kIS_NAN);
  b.unary<False, I8, U8, I32, I64, B8>(Op::kIS_NAN);
  b.unary<IsInf, F32, F64>(Op::kIS_INF);
  b.unary<False, I8, U8, I32, I64, B8>(Op::kIS_INF);
  b.unary<BitNot, I8, U8, I32, I64>(Op::kBIT_NOT);
  b.unary<LogicalNot, B8>(Op::kBIT_NOT);
  b.unary<Sin, F64>(Op::kSIN);
  b.unary<Cos, F64>(Op::kCOS);
  b.unary<Tan, F64>(Op::kTAN);
  b.k.unary[int(Op::kTAN)][int(DType::kF32)] = map_trig<Tan>;
  b.k.unary[int(Op::kSIN)][int(DType::kF32)] = map_trig<Sin>;
  b.k.unary[int(Op::kCOS)][int(DType::kF32)] = map_trig<Cos>;

  // By item size: COPY of every dtype, and the roundings of integers and bools, which are whole already.
  constexpr Unary copies[] = {nullptr, copy<uint8_t>, copy<uint16_t>, nullptr, copy<uint32_t>, nullptr, nullptr, nullptr, copy<uint64_t>};
  for (int t = 1; t < kDTypes; ++t) {
    b.k.unary[int(Op::kCOPY)][t] = copies[item_size(DType(t))];
    b.k.cast[t][t] = copies[item_size(DType(t))];
  }
  constexpr Op roundings[] = {Op::kFLOOR, Op::kCEIL, Op::kROUND, Op::kTRUNC};
  constexpr DType integers[] = {DType::kBool, DType::kI8, DType::kU8, DType::kI32, DType::kI64};
  for (Op op : roundings)
    for (DType t : integers) b.k.unary[int(op)][int(t)] = copies[item_size(t)];
  b.k.unary[int(Op::kABS)][int(DType::kBool)] = copy<uint8_t>;
}

constexpr void add_casts(Builder& b) {
  b.cast_from(F32{}, F64{}, I8{}, U8{}, I32{}, I64{}, Flag{});
  b.cast_from(F64{}, F32{}, I8{}, U8{}, I32{}, I64{}, Flag{});
  b.cast_from(I8{}, F32{}, F64{}, U8{}, I32{}, I64{}, Flag{});
  b.cast_from(U8{}, F32{}, F64{}, I8{}, I32{}, I64{}, Flag{});
  b.cast_from(I32{}, F32{}, F64{}, I8{}, U8{}, I64{}, Flag{});
  b.cast_from(I64{}, F32{}, F64{}, I8{}, U8{}, I32{}, Flag{});
  b.cast_from(Flag{}, F32{}, F64{}, I8{}, U8{}, I32{}, I64{});
}

constexpr void add_reductions(Builder& b) {
  b.reduce<Add, F32, F64, WI8, U8, WI32, WI64>(Op::kSUM);
  b.reduce<Maximum, F32, F64, I8, U8, I32, I64>(Op::kMAX);
  b.reduce<Minimum, F32, F64, I8, U8, I32, I64>(Op::kMIN);
  b.reduce<Mul, F32, F64, WI8, U8, WI32, WI64>(Op::kPROD);
  b.reduce<All, B8>(Op::kPROD);
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
  b.k.random[int(DType::kF32)] = random_numbers<float>;
  b.k.random[int(DType::kF64)] = random_numbers<double>;
  b.k.random[int(DType::kI32)] = random_numbers<int32_t>;
  b.k.random[int(DType::kI64)] = random_numbers<int64_t>;
  b.k.copy_in = copy_in;
  b.k.copy_out = copy_out;
  b.k.fill = fill;
  b.k.packed_b_bytes = packed_b_bytes;
  b.k.pack_b = pack_b;
  b.k.gemm = gemm;
  b.k.gemm_generic = gemm_generic;
}

constexpr void add_windows(Builder& b) {
  constexpr int f32 = int(DType::kF32), f64 = int(DType::kF64);
  b.k.gemm_rows = gemm_rows;
  b.k.plane_rows = plane_rows;
  b.k.offset_product = offset_product;
  b.k.pack_window[f32] = pack_window_f32;
  b.k.pack_window[f64] = pack_window_f64;
  b.k.pool_max[f32] = pool_max<float>;
  b.k.pool_max[f64] = pool_max<double>;
  b.k.pool_max_pick[f32] = pool_max_pick<float>;
  b.k.pool_max_pick[f64] = pool_max_pick<double>;
  b.k.pool_max_back[f32] = pool_max_back<float>;
  b.k.pool_max_back[f64] = pool_max_back<double>;
  b.k.pool_mean[f32] = pool_mean<float>;
  b.k.pool_mean[f64] = pool_mean<double>;
  b.k.pool_mean_back[f32] = pool_mean_back<float>;
  b.k.pool_mean_back[f64] = pool_mean_back<double>;
}

// Everything but the arithmetic of halves.
constexpr Kernels build_plain() {
  Builder b;
  b.k.level = DVM_TEXT(DVM_LEVEL);
  add_arithmetic(b);
  add_unary(b);
  add_casts(b);
  add_reductions(b);
  add_rest(b);
  add_windows(b);
  return b.k;
}
inline constexpr Kernels kPlain = build_plain();

// ---- halves: what float32 has, through float32; the cheap ops have loops of their own ---------------------------------------------------

template <class H, DType Code>
struct HalfBuilder {
  Kernels& k;
  static constexpr int kTo = int(Code), kFrom = int(DType::kF32);

  template <class F>
  constexpr void binary(Op op) {
    k.binary[int(op)][kTo] = map_half<F, H>;
    k.binary_vs[int(op)][kTo] = map_half_rows<F, H, false>;
    k.binary_sv[int(op)][kTo] = map_half_rows<F, H, true>;
  }
  static constexpr bool cheap(Op op) { return (op >= Op::kADD && op <= Op::kMINIMUM && op != Op::kPOW) || op == Op::kNEG || op == Op::kABS; }

  // One op of ops.def that is not among the cheap ones.
  template <Op O, bool MakesBool>
  constexpr void through_float() {
    if constexpr (!MakesBool && !cheap(O) && O != Op::kCOPY) {
      constexpr int op = int(O);
      if constexpr (constexpr Unary of = kPlain.unary[op][kFrom]; of != nullptr) k.unary[op][kTo] = unary_through<H, of>;
      if constexpr (constexpr Binary of = kPlain.binary[op][kFrom]; of != nullptr) {
        k.binary[op][kTo] = binary_through<H, of>;
        k.binary_vs[op][kTo] = rows_through<H, kPlain.binary_vs[op][kFrom], of, false>;
        k.binary_sv[op][kTo] = rows_through<H, kPlain.binary_sv[op][kFrom], of, true>;
      }
    }
  }
  template <class X, DType Other>
  constexpr void casts(As<X, Other>) {
    constexpr int other = int(Other);
    k.cast[kTo][other] = cast_through<H, X, widen<H>, kPlain.cast[kFrom][other]>;
    if constexpr (kPlain.cast[other][kFrom] != nullptr && sizeof(X) < 4) k.cast[other][kTo] = cast_through<X, H, kPlain.cast[other][kFrom], narrow<H>>;
    else k.cast[other][kTo] = cast_through<X, H, cast<X, Odd>, narrow<H>>;
  }
  constexpr void add() {
    binary<Add>(Op::kADD);
    binary<Sub>(Op::kSUB);
    binary<Mul>(Op::kMUL);
    binary<Div>(Op::kDIV);
    binary<Maximum>(Op::kMAXIMUM);
    binary<Minimum>(Op::kMINIMUM);
    binary<Equal>(Op::kEQUAL);
    binary<NotEqual>(Op::kNOT_EQUAL);
    binary<Less>(Op::kLESS);
    binary<LessEqual>(Op::kLESS_EQUAL);
    binary<Greater>(Op::kGREATER);
    binary<GreaterEqual>(Op::kGREATER_EQUAL);
    k.unary[int(Op::kNEG)][kTo] = map_unary<HalfNeg<H>, H>;
    k.unary[int(Op::kABS)][kTo] = map_unary<HalfAbs<H>, H>;
    k.unary[int(Op::kIS_FINITE)][kTo] = map_unary<HalfIsFinite<H>, H>;
    k.unary[int(Op::kIS_NAN)][kTo] = map_unary<HalfIsNan<H>, H>;
    k.unary[int(Op::kIS_INF)][kTo] = map_unary<HalfIsInf<H>, H>;
#define DVM_OP(name, code, cls, arity, dtype, meaning) through_float<Op::k##name, #dtype[0] == 'b'>();
#include "ops.def"
#undef DVM_OP
    casts(F64{});
    casts(I8{});
    casts(U8{});
    casts(I32{});
    casts(I64{});
    casts(Flag{});
    k.cast[kTo][kFrom] = widen<H>;
    k.cast[kFrom][kTo] = narrow<H>;
  }
};

constexpr Kernels build() {
  Kernels k = kPlain;
  HalfBuilder<Half, DType::kF16>{k}.add();
  HalfBuilder<Brain, DType::kBF16>{k}.add();
  k.cast[int(DType::kF16)][int(DType::kBF16)] = cast_through<Half, Brain, widen<Half>, narrow<Brain>>;
  k.cast[int(DType::kBF16)][int(DType::kF16)] = cast_through<Brain, Half, widen<Brain>, narrow<Half>>;
  return k;
}

}  // namespace DVM_LEVEL

extern const Kernels DVM_PASTE(kernels_table_, DVM_LEVEL);
constinit const Kernels DVM_PASTE(kernels_table_, DVM_LEVEL) = DVM_LEVEL::build();

}  // namespace dvm
