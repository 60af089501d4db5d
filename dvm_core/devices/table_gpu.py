"""What libraries of GPU vendors would run each op: names and dtypes, no more. There is no adapter for GPUs in this version, and nothing
here was ever run.

NVIDIA: cuBLAS (`cublasGemmStridedBatchedEx`), cuDNN (graph API: a pointwise, reduction, ... node; the others are functions), CUDA runtime.
AMD: hipBLAS, MIOpen, HIP runtime. Names as in the vendors' API references.
"""

from __future__ import annotations

from dataclasses import dataclass

_ML = "f32 f16 bf16"
_BYTES = "f32 f16 bf16 f64 bool i8 u8 i32 i64"  # what is only copied


@dataclass(frozen=True)
class Row:
    """Calls one after the other and the dtypes they take; no calls: the note is the reason."""

    calls: tuple[str, ...]
    dtypes: str = ""
    note: str = ""


def _row(calls: str, dtypes: str = _ML, note: str = "") -> Row:
    return Row(tuple(calls.split()), dtypes, note)


def _none(reason: str) -> Row:
    return Row((), note=reason)


_INDEXED = "no library op: gather and scatter are kernels of the framework's own"
_SORT = "no library op: sorts are CUB's or rocPRIM's device functions, which are C++ templates"
_SCAN = "no library op: scans are CUB's or rocPRIM's device functions, which are C++ templates"
_WHOLE = "no library op for integers' bits"
_RANDOM = "the numbers are defined by seed, offset and element number (docs/bytecode.md); vendors' generators make others"
_ARG = "no library op for positions alone"

_POINTWISE = {
    "ADD": "ADD", "SUB": "SUB", "MUL": "MUL", "DIV": "DIV", "POW": "POW", "MAXIMUM": "MAX", "MINIMUM": "MIN", "FMOD": "MOD",
    "EQUAL": "CMP_EQ", "NOT_EQUAL": "CMP_NEQ", "LESS": "CMP_LT", "LESS_EQUAL": "CMP_LE", "GREATER": "CMP_GT", "GREATER_EQUAL": "CMP_GE",
    "NEG": "NEG", "ABS": "ABS", "EXP": "EXP", "LOG": "LOG", "SQRT": "SQRT", "RSQRT": "RSQRT", "RECIPROCAL": "RECIPROCAL",
    "TANH": "TANH_FWD", "ERF": "ERF",
    "SIGMOID": "SIGMOID_FWD", "FLOOR": "FLOOR", "CEIL": "CEIL", "SIN": "SIN", "COS": "COS", "TAN": "TAN", "COPY": "IDENTITY",
    "CAST": "IDENTITY", "SELECT": "BINARY_SELECT",
}  # fmt: skip
_LOGICAL = {"LOGICAL_AND": "LOGICAL_AND", "LOGICAL_OR": "LOGICAL_OR", "LOGICAL_NOT": "LOGICAL_NOT"}
_REDUCE = {"SUM": "ADD", "MAX": "MAX", "MIN": "MIN", "MEAN": "AVG", "PROD": "MUL"}
_NO_POINTWISE = ("ROUND", "TRUNC", "IS_FINITE", "IS_INF", "SIGN", "ATAN", "LOG1P", "EXPM1", "REMAINDER")
_BITS = ("BIT_NOT", "BIT_AND", "BIT_OR", "BIT_XOR", "SHIFT_LEFT", "SHIFT_RIGHT")
_NEITHER: dict[str, Row] = {
    **dict.fromkeys(_BITS, _none(_WHOLE)),
    **dict.fromkeys(
        ("GATHER", "GATHER_ELEMENTS", "SCATTER", "SCATTER_ELEMENTS", "SCATTER_ADD", "SCATTER_ADD_ELEMENTS", "ONE_HOT"), _none(_INDEXED)
    ),
    **dict.fromkeys(("SORT", "ARGSORT", "TOPK"), _none(_SORT)),
    **dict.fromkeys(("ARGMAX", "ARGMIN"), _none(_ARG)),
    "CUMSUM": _none(_SCAN),
    "RANDOM": _none(_RANDOM),
}

CUDA: dict[str, Row] = {
    **{op: _row(f"CUDNN_POINTWISE_{mode}") for op, mode in _POINTWISE.items()},
    **{op: _row(f"CUDNN_POINTWISE_{mode}", "bool") for op, mode in _LOGICAL.items()},
    "IS_NAN": _row("CUDNN_POINTWISE_CMP_NEQ", note="a value that differs from itself"),
    **dict.fromkeys(_NO_POINTWISE, _none("cuDNN has no pointwise mode for it")),
    **{op: _row(f"CUDNN_REDUCE_TENSOR_{mode}", note="sums in the library's own order") for op, mode in _REDUCE.items()},
    "MATMUL": _row("cublasGemmStridedBatchedEx", f"{_ML} f64", "sums in the library's own order"),
    "CONV2D": _row("cudnnConvolutionForward", note="as many zeros after as before"),
    "CONV2D_WEIGHT": _row("cudnnConvolutionBackwardFilter", note="as many zeros after as before"),
    "MAX_POOL2D": _row("cudnnPoolingForward", note="CUDNN_POOLING_MAX; no dilation"),
    "MAX_POOL2D_GRAD": _row("cudnnPoolingForward cudnnPoolingBackward", note="CUDNN_POOLING_MAX; no dilation"),
    "AVG_POOL2D": _row("cudnnPoolingForward", note="CUDNN_POOLING_AVERAGE_COUNT_..._PADDING"),
    "AVG_POOL2D_GRAD": _none("the vendor's gradient also reads the pool's operand and result, which the instruction has not"),
    "RESHAPE": _row("cudaMemcpyAsync", _BYTES),
    "TRANSPOSE": _row("cudnnTransformTensor"),
    "SLICE": _row("cudnnTransformTensor"),
    "BROADCAST": _row("cudnnSetTensor cudnnAddTensor"),
    "CONCAT": _row("cudaMemcpy2DAsync", _BYTES),
    "UNSLICE": _row("cudaMemsetAsync cudnnTransformTensor"),
    "PAD": _row("cudnnSetTensor cudnnTransformTensor"),
    "FULL": _row("cudnnSetTensor"),
    "IOTA": _row("CUDNN_POINTWISE_GEN_INDEX"),
    **_NEITHER,
}

_HIP_TENSOR = {"ADD": "Add", "MUL": "Mul", "MAXIMUM": "Max", "MINIMUM": "Min"}
_HIP_ACTIVATION = {"TANH": "TANH", "SIGMOID": "LOGISTIC", "ABS": "ABS"}
_HIP_REDUCE = {"SUM": "ADD", "MAX": "MAX", "MIN": "MIN", "MEAN": "AVG", "PROD": "MUL"}
_HIP_MISSING = (*_POINTWISE, *_LOGICAL, *_NO_POINTWISE, "IS_NAN", "IOTA")

ROCM: dict[str, Row] = {
    **dict.fromkeys(_HIP_MISSING, _none("MIOpen has no such op: frameworks compile a kernel of their own")),
    **{op: _row(f"miopenOpTensor:miopenTensorOp{mode}", "f32 f16") for op, mode in _HIP_TENSOR.items()},
    "SUB": _row("miopenOpTensor:miopenTensorOpAdd", "f32 f16", "with alpha2 = -1"),
    **{op: _row(f"miopenActivationForward:miopenActivation{mode}", "f32 f16") for op, mode in _HIP_ACTIVATION.items()},
    **{
        op: _row(f"miopenReduceTensor:MIOPEN_REDUCE_TENSOR_{mode}", "f32 f16", "sums in the library's own order")
        for op, mode in _HIP_REDUCE.items()
    },
    "COPY": _row("hipMemcpyAsync", _BYTES),
    "MATMUL": _row("hipblasGemmStridedBatchedEx", f"{_ML} f64", "sums in the library's own order"),
    "CONV2D": _row("miopenConvolutionForward", note="as many zeros after as before"),
    "CONV2D_WEIGHT": _row("miopenConvolutionBackwardWeights", note="as many zeros after as before"),
    "MAX_POOL2D": _row("miopenPoolingForward:miopenPoolingMax", "f32 f16", "no dilation"),
    "MAX_POOL2D_GRAD": _row("miopenPoolingForward:miopenPoolingMax miopenPoolingBackward", "f32 f16", "no dilation"),
    "AVG_POOL2D": _row("miopenPoolingForward:miopenPoolingAverage", "f32 f16"),
    "AVG_POOL2D_GRAD": CUDA["AVG_POOL2D_GRAD"],
    "RESHAPE": _row("hipMemcpyAsync", _BYTES),
    "TRANSPOSE": _row("miopenTransformTensor", "f32 f16"),
    "SLICE": _row("miopenTransformTensor", "f32 f16"),
    "BROADCAST": _row("miopenSetTensor miopenOpTensor:miopenTensorOpAdd", "f32 f16"),
    "CONCAT": _row("hipMemcpy2DAsync", _BYTES),
    "UNSLICE": _row("hipMemsetAsync miopenTransformTensor", "f32 f16"),
    "PAD": _row("miopenSetTensor miopenTransformTensor", "f32 f16"),
    "FULL": _row("miopenSetTensor", "f32 f16"),
    **_NEITHER,
}
