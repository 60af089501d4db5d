"""How each op is called on Ascend: the aclnn functions of CANN's operator libraries, two phases each (`...GetWorkspaceSize`, then the
function itself), with their arguments in order. What a word stands for is in `arguments`.

What starts with `host.` is made on the host and copied in: it reads no tensor.

Names, order and types of arguments: the vendor's public documentation and headers of each function (gitcode.com/cann, repositories
ops-math and ops-nn, docs/aclnn*.md; hiascend.com, "aolapi"). Dtypes and limits are those of Atlas A2 (910B) there for remainders, shifts,
sums along an axis, means, erf, tan and pools; of the other functions, whose lists were not all at hand, those of their kind: the library
checks for itself, and its refusal (161002) is an error with the call's name. Nothing here was ever run on hardware.
"""

from __future__ import annotations

from dataclasses import dataclass

FLOATS = "f32 f16 bf16"
WIDE = "f32 f16 bf16 f64"
WHOLE = "i8 u8 i32 i64"
NUMBERS = f"{WIDE} {WHOLE}"
ALL = f"{NUMBERS} bool"


@dataclass(frozen=True)
class Variant:
    """One way to run an op: for these dtypes of its operand; the first whose conditions hold is taken. calls: one after the other,
    "name argument argument ...". right and left: the call instead, if the second or first operand is the immediate (without one, a tensor
    is filled with it). when: conditions by name, all of which must hold. temporaries: "name dtype-of shape-of". note: where the result may
    differ from ours. reason: why these dtypes have none."""

    dtypes: str
    calls: tuple[str, ...] = ()
    right: str = ""
    left: str = ""
    when: tuple[str, ...] = ()
    temporaries: tuple[str, ...] = ()
    note: str = ""
    reason: str = ""


def _never(dtypes: str, reason: str) -> tuple[Variant, ...]:
    return (Variant(dtypes, reason=reason),)


def _one(
    dtypes: str, *calls: str, right: str = "", left: str = "", when: str = "", temporaries: tuple[str, ...] = (), note: str = ""
) -> tuple[Variant, ...]:
    return (Variant(dtypes, calls, right, left, tuple(when.split()), temporaries, note),)


def _unary(name: str, dtypes: str = WIDE, note: str = "") -> tuple[Variant, ...]:
    return _one(dtypes, f"aclnn{name} a r", note=note)


def _compare(name: str, mirrored: str) -> tuple[Variant, ...]:
    return _one(ALL, f"aclnn{name}Tensor a b r", right=f"aclnn{name}Scalar a $ r", left=f"aclnn{mirrored}Scalar b $ r")


def _rounding(name: str) -> tuple[Variant, ...]:
    return (*_unary(name), *_one(f"{WHOLE} bool", "aclnnInplaceCopy r a"))  # integers are whole


def _bits(name: str) -> tuple[Variant, ...]:
    return _one(f"{WHOLE} bool", f"aclnnBitwise{name}Tensor a b r")


def _shift(name: str) -> tuple[Variant, ...]:
    return _one(WHOLE, f"aclnn{name}Shift a b r", when="shift_fits")


def _extreme(name: str, whole: str) -> tuple[Variant, ...]:
    return (*_one(NUMBERS, f"aclnn{name} a axes keepdims r"), *_one("bool", f"aclnn{whole} a axes keepdims r"))


def _convolution(call: str, before: str = "", temporary: str = "") -> tuple[Variant, ...]:
    # As it is, or of the image laid out with the zeros around and between its elements that the vendor's function has no argument for.
    first, own = tuple(filter(None, (before,))), tuple(filter(None, (temporary,)))
    laid_out = (*first, "aclnnInplaceZero p", "aclnnInplaceCopy p:placed a:cropped", call.format(image="p", pads="zeros"))
    return (
        *_one(FLOATS, "aclnnInplaceZero r", when="nothing_to_add"),
        *_one(FLOATS, *first, call.format(image="a", pads="pads"), when="no_gap even_pads", temporaries=own),
        *_one(FLOATS, *laid_out, temporaries=(*own, "p a window")),
    )


def _guarded(call: str, dtypes: str) -> tuple[Variant, ...]:
    # Of integers: by 1 where the divisor is 0, and 0 put there.
    calls = ("aclnnEqScalar b zero m", "aclnnInplaceFillScalar o one", "aclnnSWhere m o b v", call, "aclnnInplaceZero z",
             "aclnnSWhere m z u r")  # fmt: skip
    return _one(dtypes, *calls, temporaries=("m bool b", "o r one", "v b b", "u r r", "z r one"))


_ORDER = "NaN may be in another place"
_SUMS = "sums in no fixed order: the last bits of floats may change from run to run"
_INDICES = ("v a a", "i i64 a")
_DUPLICATES = "refused if two indices name the same element: the last one stays here, and aclnn does not fix which"

# op -> its variants, or the reason why there is none
ASCEND: dict[str, tuple[Variant, ...] | str] = {
    "ADD": (*_one(NUMBERS, "aclnnAdd a b one r", right="aclnnAdds a $ one r", left="aclnnAdds b $ one r"),
            *_one("bool", "aclnnLogicalOr a b r")),
    "SUB": _one(NUMBERS, "aclnnSub a b one r", right="aclnnSubs a $ one r", left="aclnnRsubs b $ one r"),
    "MUL": (*_one(NUMBERS, "aclnnMul a b r", right="aclnnMuls a $ r", left="aclnnMuls b $ r"), *_one("bool", "aclnnLogicalAnd a b r")),
    "DIV": (*_one(WIDE, "aclnnDiv a b r", right="aclnnDivs a $ r"), *_guarded("aclnnDivMod a v floor u", WHOLE)),
    "POW": (*_one(WIDE, "aclnnPowTensorTensor a b r", right="aclnnPowTensorScalar a $ r", left="aclnnPowScalarTensor $ b r"),
            *_never(WHOLE, "negative powers of integers are cut off here; aclnn does not say what they are")),
    "MAXIMUM": (*_one(NUMBERS, "aclnnMaximum a b r", note=_ORDER), *_one("bool", "aclnnLogicalOr a b r")),
    "MINIMUM": (*_one(NUMBERS, "aclnnMinimum a b r", note=_ORDER), *_one("bool", "aclnnLogicalAnd a b r")),
    "EQUAL": _compare("Eq", "Eq"),
    "NOT_EQUAL": _compare("Ne", "Ne"),
    "LESS": _compare("Lt", "Gt"),
    "LESS_EQUAL": _compare("Le", "Ge"),
    "GREATER": _compare("Gt", "Lt"),
    "GREATER_EQUAL": _compare("Ge", "Le"),
    "LOGICAL_AND": _one("bool", "aclnnLogicalAnd a b r"),
    "LOGICAL_OR": _one("bool", "aclnnLogicalOr a b r"),
    "LOGICAL_NOT": _unary("LogicalNot", "bool"),
    "NEG": _unary("Neg", f"{WIDE} i8 i32 i64"),
    "ABS": (*_unary("Abs", NUMBERS), *_one("bool", "aclnnInplaceCopy r a")),
    "EXP": _unary("Exp"),
    "LOG": _unary("Log"),
    "SQRT": _unary("Sqrt"),
    "RSQRT": _unary("Rsqrt"),
    "RECIPROCAL": _unary("Reciprocal", FLOATS),
    "TANH": _unary("Tanh"),
    "ERF": _unary("Erf"),
    "SIGMOID": _unary("Sigmoid"),
    "FLOOR": _rounding("Floor"),
    "CEIL": _rounding("Ceil"),
    "ROUND": _rounding("Round"),
    "TRUNC": _rounding("Trunc"),
    "IS_FINITE": (*_unary("IsFinite", WIDE), *_one(f"{WHOLE} bool", "aclnnEqTensor a a r")),
    "IS_NAN": _one(ALL, "aclnnNeTensor a a r"),
    "IS_INF": (*_unary("IsInf", FLOATS), *_one(f"{WHOLE} bool", "aclnnInplaceZero r")),
    "SIN": _unary("Sin"),
    "COS": _unary("Cos"),
    "TAN": _unary("Tan", note="NaN from 1e7 on with a 950"),
    "ATAN": _unary("Atan"),
    "LOG1P": _unary("Log1p"),
    "EXPM1": _unary("Expm1", FLOATS),
    "SIGN": _unary("Sign", f"{WIDE} i32 i64", note="NaN may become 0"),
    "COPY": _one(ALL, "aclnnInplaceCopy r a"),
    "CAST": _one(ALL, "aclnnCast a dtype r", note="a float outside of an integer dtype's range may become another number"),
    "SELECT": _one(ALL, "aclnnSWhere a b c r"),
    "FMOD": (*_one(WIDE, "aclnnFmodTensor a b r", right="aclnnFmodScalar a $ r"),
             *_guarded("aclnnFmodTensor a v u", WHOLE)),
    "REMAINDER": (*_one(WIDE, "aclnnRemainderTensorTensor a b r", right="aclnnRemainderTensorScalar a $ r",
                        left="aclnnRemainderScalarTensor $ b r"),
                  *_guarded("aclnnRemainderTensorTensor a v u", "i32 i64")),
    "BIT_NOT": _unary("BitwiseNot", f"{WHOLE} bool"),
    "BIT_AND": _bits("And"),
    "BIT_OR": _bits("Or"),
    "BIT_XOR": _bits("Xor"),
    "SHIFT_LEFT": _shift("Left"),
    "SHIFT_RIGHT": _shift("Right"),
    "SUM": (*_one(NUMBERS, "aclnnReduceSum a axes keepdims dtype r"), *_one("bool", "aclnnAny a axes keepdims r")),
    "MAX": _extreme("Amax", "Any"),
    "MIN": _extreme("Amin", "All"),
    "MEAN": _one(WIDE, "aclnnMean a axes keepdims dtype r"),
    "PROD": (*_one(NUMBERS, "aclnnProdDim a:merged first_axis true dtype r:merged"), *_one("bool", "aclnnAll a axes keepdims r")),
    "MATMUL": _one(FLOATS, "aclnnMatmul a:transpose_a b:transpose_b r keep_dtype", when="matrices",
                   note="float32 sums in the cube unit's own order"),
    "CONV2D": _convolution("aclnnConvolution {image}:planes b:planes none strides {pads} dilations false zeros groups r:planes keep_dtype"),
    "CONV2D_WEIGHT": _convolution(
        "aclnnConvolutionBackward b:planes {image}:planes v:planes no_ints strides {pads} dilations false zeros groups_int weight_only "
        "keep_dtype none r:planes none", "aclnnInplaceZero v", "v r r"),  # of the weight only the shape counts
    "MAX_POOL2D": _one("f32", "aclnnMaxPool2dWithIndices a:planes taps strides pads dilations false r:planes i:planes",
                       when="one_operand even_pads small_pads no_dilation", temporaries=("i i32 r",),
                       note="NaN and -Inf are not supported"),
    "MAX_POOL2D_GRAD": _one("f32", "aclnnMaxPool2dWithIndices a:planes taps strides pads dilations false v:planes i:planes",
                            "aclnnMaxPool2dWithIndicesBackward b:planes a:planes i:planes taps strides pads dilations false r:planes",
                            when="even_pads small_pads no_dilation", temporaries=("v b b", "i i32 b"),
                            note="NaN and -Inf are not supported; sums in no fixed order"),
    "AVG_POOL2D": _one(FLOATS, "aclnnAvgPool2d a:planes taps strides pads false count_padding divisor keep_dtype r:planes",
                       when="even_pads small_pads"),
    "AVG_POOL2D_GRAD": _one(FLOATS, "aclnnInplaceZero v", "aclnnAvgPool2dBackward a:planes v:planes taps strides pads false count_padding "
                            "divisor keep_dtype r:planes", when="even_pads small_pads",
                            temporaries=("v r r",)),  # of the pool's operand only the shape counts
    "RESHAPE": _one(ALL, "aclnnInplaceCopy r a:reshaped"),
    "TRANSPOSE": _one(ALL, "aclnnInplaceCopy r a:permuted"),
    "SLICE": (*_one(ALL, "aclnnInplaceCopy r a:sliced", when="forward_steps"), *_one(ALL, "aclnnFlip a:sliced backward_axes r")),
    "BROADCAST": _one(ALL, "aclnnInplaceCopy r a:broadcast"),
    "CONCAT": _one(ALL, "aclnnCat all axis r"),
    "UNSLICE": (*_one(ALL, "aclnnInplaceZero r", "aclnnInplaceCopy r:unsliced a", when="forward_steps"),
                *_one(ALL, "aclnnInplaceZero r", "aclnnFlip a backward_axes v", "aclnnInplaceCopy r:unsliced v", temporaries=("v a a",))),
    "GATHER": _one(ALL, "aclnnIndexSelect a axis index r:taken"),
    "SCATTER_ADD": _one(f"{FLOATS} i32 i64", "aclnnInplaceZero z", "aclnnIndexAdd z axis index a:put one r", temporaries=("z r r",),
                        note=_SUMS),
    "GATHER_ELEMENTS": _one(ALL, "aclnnGather a axis index_elements r"),
    "SCATTER": _one(ALL, "aclnnScatter a axis index_rows c:put replace r", note=_DUPLICATES),
    "SCATTER_ELEMENTS": _one(ALL, "aclnnScatter a axis index_distinct c replace r", note=_DUPLICATES),
    "SCATTER_ADD_ELEMENTS": _one(f"{FLOATS} i32 i64", "aclnnInplaceZero z", "aclnnScatterAdd z axis index_elements a r",
                                 temporaries=("z r r",), note=_SUMS),
    "ONE_HOT": _one("i32 i64", "aclnnInplaceFillScalar v on", "aclnnInplaceFillScalar w off", "aclnnOneHot a depth v w last_axis r",
                    when="one_hot_result", temporaries=("v r single", "w r single")),
    "PAD": _one(ALL, "aclnnConstantPadNd a around $ r"),
    "CUMSUM": _one(NUMBERS, "aclnnCumsumV2 a axis exclusive reverse r"),
    "FULL": _one(ALL, "aclnnInplaceFillScalar r $"),
    "IOTA": (*_one(f"{WIDE} i32 i64", "aclnnArange zero extent one v", "aclnnInplaceCopy r v:along", temporaries=("v r extent",)),
             *_one("i8 u8", "aclnnArange zero_i32 extent_i32 one_i32 w", "aclnnCast w dtype v", "aclnnInplaceCopy r v:along",
                   temporaries=("v r extent", "w i32 extent"))),
    "ARGMAX": _one(NUMBERS, "aclnnArgMax a extreme_axis keepdims r", note=_ORDER),
    "ARGMIN": _one(NUMBERS, "aclnnArgMin a extreme_axis keepdims r", note=_ORDER),
    "SORT": _one(NUMBERS, "aclnnSort a true axis descending r i", temporaries=("i i64 a",)),
    "ARGSORT": _one(NUMBERS, "aclnnSort a true axis descending v i", "aclnnCast i dtype r", temporaries=_INDICES),
    "TOPK": _one(NUMBERS, "aclnnSort a true axis descending v i", "aclnnCast i:first dtype r", temporaries=_INDICES),
    # aclnn's generators make other numbers
    "RANDOM": _one("f32 f64 i32 i64", "host.random r"),
}  # fmt: skip
