"""What CANN's operators compute, in NumPy: floats of 16 bits are computed in float32. Arguments as in `ascend_documents`; each gives what
its written tensors hold, in order."""
from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
from window_reference import WINDOWS, through

_erf = np.vectorize(math.erf, otypes=[np.float64])


def _index_add(x, dim, index, source, alpha):
    out = x.copy()
    np.add.at(np.moveaxis(out, dim, 0), index, np.moveaxis(source, dim, 0) * alpha)
    return out


def _scatter_add(x, dim, index, source):
    out = x.copy()
    at = list(np.indices(index.shape))
    at[dim] = index
    np.add.at(out, tuple(at), source)
    return out


def _scatter(x, dim, index, source, reduce):
    assert reduce == 0
    out = x.copy()
    at = list(np.indices(index.shape))
    at[dim] = index
    out[tuple(at)] = source
    return out


def _pad(x, pads, value):
    if not x.ndim:
        return x
    widths = [(pads[2 * i], pads[2 * i + 1]) for i in range(x.ndim)][::-1]
    return np.pad(x, widths, constant_values=value)


def _cumsum(x, dim, exclusive, reverse):
    x = np.flip(x, dim) if reverse else x
    total = np.cumsum(x, dim, dtype=x.dtype)
    if exclusive and x.shape[dim]:  # a place later, from 0
        total = np.concatenate([np.zeros_like(np.take(total, [0], dim)), np.delete(total, -1, dim)], dim)
    return np.flip(total, dim) if reverse else total


def _sort(x, stable, dim, descending):
    assert stable
    if descending:
        order = x.shape[dim] - 1 - np.flip(np.argsort(np.flip(x, dim), dim, kind="stable"), dim)
    else:
        order = np.argsort(x, dim, kind="stable")
    return np.take_along_axis(x, order, dim), order


def _one_hot(index, depth, on, off, axis):
    assert axis == -1
    return np.where(index[..., None] == np.arange(depth), on[0], off[0])


def _cast(x, dtype):
    return np.trunc(x) if x.dtype.kind == "f" and dtype in ("int8", "uint8", "int32", "int64") else x


def _convolution(shapes, x, weight, bias, stride, pads, dilation, transposed, outside, groups, cube):
    assert bias is None and not transposed and outside == (0, 0) and cube == 0
    return WINDOWS["CONV2D"](SimpleNamespace(attrs=(*stride, *pads, *dilation, 1, 1, groups), shape=shapes[0]), x, weight)


def _convolution_backward(shapes, error, x, weight, bias, stride, pads, dilation, transposed, outside, groups, mask, cube):
    assert mask == (False, True, False) and bias is None and not transposed and cube == 0
    made = WINDOWS["CONV2D_WEIGHT"](SimpleNamespace(attrs=(*stride, *pads, *dilation, 1, 1, groups), shape=weight.shape), x, error)
    return None, made, None


def _max_pool(shapes, x, taps, stride, pads, dilation, ceil):
    # The largest of each window, and its number within its plane.
    number = np.broadcast_to(np.arange(math.prod(x.shape[2:]), dtype=float).reshape(x.shape[2:]), x.shape)
    best, at = np.full(shapes[0], -np.inf), np.full(shapes[0], -1.0)
    for ty in range(taps[0]):
        for tx in range(taps[1]):
            seen = through(x, shapes[0][2:], ty, tx, stride, pads, dilation, empty=-np.inf)
            at = np.where(seen > best, through(number, shapes[0][2:], ty, tx, stride, pads, dilation, empty=-1.0), at)
            best = np.maximum(best, seen)
    return best, at


def _max_pool_backward(shapes, error, x, indices, *window):
    out = np.zeros((math.prod(x.shape[:2]), math.prod(x.shape[2:])))
    planes = indices.reshape(len(out), -1)
    np.add.at(out, (np.arange(len(out))[:, None], planes), error.reshape(planes.shape))
    return out.reshape(x.shape)


def _avg_pool(shapes, x, taps, stride, pads, ceil, count_padding, divisor, cube):
    attrs = (*taps, *stride, *pads, *pads, int(count_padding), divisor)
    return WINDOWS["AVG_POOL2D"](SimpleNamespace(attrs=attrs, shape=shapes[0]), x)


def _avg_pool_backward(shapes, error, x, taps, stride, pads, ceil, count_padding, divisor, cube):
    attrs = (*taps, *stride, *pads, *pads, int(count_padding), divisor)
    return WINDOWS["AVG_POOL2D_GRAD"](SimpleNamespace(attrs=attrs, shape=shapes[0]), error)


# These are told the shapes of what they write first.
WINDOWED = {
    "Convolution": _convolution, "ConvolutionBackward": _convolution_backward, "MaxPool2dWithIndices": _max_pool,
    "MaxPool2dWithIndicesBackward": _max_pool_backward, "AvgPool2d": _avg_pool,
    "AvgPool2dBackward": _avg_pool_backward,
}  # fmt: skip
NUMPY = {
    "Add": lambda a, b, alpha: a + alpha * b, "Adds": lambda a, s, alpha: a + alpha * s, "Sub": lambda a, b, alpha: a - alpha * b,
    "Subs": lambda a, s, alpha: a - alpha * s, "Rsubs": lambda a, s, alpha: s - alpha * a, "Mul": np.multiply, "Muls": np.multiply,
    "Div": np.divide, "Divs": np.divide, "DivMod": lambda a, b, mode: np.floor_divide(a, b) if mode == 2 else None,
    "PowTensorTensor": np.power, "PowTensorScalar": np.power, "PowScalarTensor": np.power,
    "Maximum": np.maximum, "Minimum": np.minimum, "LogicalAnd": np.logical_and, "LogicalOr": np.logical_or, "LogicalNot": np.logical_not,
    "Neg": np.negative, "Abs": np.abs, "Exp": np.exp, "Log": np.log, "Sqrt": np.sqrt, "Rsqrt": lambda x: 1 / np.sqrt(x),
    "Reciprocal": lambda x: 1 / x, "Tanh": np.tanh, "Erf": _erf, "Sigmoid": lambda x: 1 / (1 + np.exp(-x)), "Floor": np.floor,
    "Ceil": np.ceil, "Round": np.rint, "Trunc": np.trunc, "IsFinite": np.isfinite, "IsInf": np.isinf, "Sin": np.sin, "Cos": np.cos,
    "Tan": np.tan, "Atan": np.arctan, "Log1p": np.log1p, "Expm1": np.expm1, "Sign": np.sign,
    "InplaceCopy": lambda r, x: np.broadcast_to(x, r.shape),
    "Cast": _cast, "SWhere": np.where, "FmodTensor": np.fmod, "FmodScalar": np.fmod, "RemainderTensorTensor": np.remainder,
    "RemainderTensorScalar": np.remainder, "RemainderScalarTensor": np.remainder, "BitwiseNot": np.invert,
    "BitwiseAndTensor": np.bitwise_and, "BitwiseOrTensor": np.bitwise_or, "BitwiseXorTensor": np.bitwise_xor,
    "LeftShift": np.left_shift, "RightShift": np.right_shift,
    **{f"{name}{kind}": fn for name, fn in (("Eq", np.equal), ("Ne", np.not_equal), ("Lt", np.less), ("Le", np.less_equal),
                                            ("Gt", np.greater), ("Ge", np.greater_equal)) for kind in ("Tensor", "Scalar")},
    "ReduceSum": lambda x, dims, keep, dtype: x.sum(dims, keepdims=keep, dtype=x.dtype),
    "Mean": lambda x, dims, keep, dtype: x.mean(dims, keepdims=keep),
    "Amax": lambda x, dims, keep: x.max(dims, keepdims=keep), "Amin": lambda x, dims, keep: x.min(dims, keepdims=keep),
    "Any": lambda x, dims, keep: x.any(dims, keepdims=keep), "All": lambda x, dims, keep: x.all(dims, keepdims=keep),
    "ProdDim": lambda x, dim, keep, dtype: x.prod(dim, keepdims=keep, dtype=x.dtype), "Matmul": lambda a, b, cube: np.matmul(a, b),
    "Cat": lambda xs, dim: np.concatenate(xs, dim), "Flip": np.flip, "InplaceZero": np.zeros_like, "InplaceFillScalar": np.full_like,
    "IndexSelect": lambda x, dim, index: np.take(x, index, dim), "IndexAdd": _index_add,
    "Gather": lambda x, dim, index: np.take_along_axis(x, index.astype(np.int64), dim), "Scatter": _scatter,
    "ScatterAdd": _scatter_add, "OneHot": _one_hot,
    "ConstantPadNd": _pad, "CumsumV2": _cumsum, "Arange": lambda start, end, step: np.arange(start, end, step),
    "ArgMax": lambda x, dim, keep: np.argmax(x, dim, keepdims=keep), "ArgMin": lambda x, dim, keep: np.argmin(x, dim, keepdims=keep),
    "Sort": _sort,
}  # fmt: skip
