"""Lowerings of the ops networks are made of: matmul and dense layers, softmax, losses."""
from __future__ import annotations

import math
from typing import Any

from .emit import FLOATS
from .lowering import Unlowerable, lowers, normal_axes, unify
from .mindspore_activations import softplus

# ---- matmul --------------------------------------------------------------------------------------------------------------------------


def matmul(c: Any, a: int, b: int, transpose_a: bool = False, transpose_b: bool = False) -> int:
    """a @ b, vectors as NumPy treats them; operands of one float dtype."""
    a, b = unify(c, a, b)
    if c.dtype(a) not in FLOATS:
        raise Unlowerable
    shape_a, shape_b = c.shape(a), c.shape(b)
    if len(shape_a) > 1 and len(shape_b) > 1:
        return c.matmul(a, b, transpose_a, transpose_b)
    if not shape_a or not shape_b or transpose_a or transpose_b:
        raise Unlowerable
    row = c.reshape(a, (1, *shape_a)) if len(shape_a) == 1 else a
    column = c.reshape(b, (*shape_b, 1)) if len(shape_b) == 1 else b
    result = c.matmul(row, column)
    shape = c.shape(result)
    if len(shape_b) == 1:
        shape = shape[:-1]
    if len(shape_a) == 1:
        shape = (*shape[:-2], shape[-1]) if len(shape_b) > 1 else shape[:-1]
    return c.reshape(result, shape)


@lowers("MatMul", "BatchMatMul")
def _matmul(c: Any, a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False) -> int:
    return matmul(c, c.value(a), c.value(b), bool(transpose_a), bool(transpose_b))


@lowers("MatMulExt", "BatchMatMulExt", "Mm", "Mv", "Dot")
def _matmul_ext(c: Any, a: Any, b: Any) -> int:
    return matmul(c, c.value(a), c.value(b))


@lowers("Dense")
def _dense(c: Any, x: Any, weight: Any, bias: Any = None) -> int:
    value = c.value(x)
    shape = c.shape(value)
    rows = value if len(shape) == 2 else c.reshape(value, (math.prod(shape[:-1]), shape[-1]))
    result = c.matmul(rows, c.value(weight), False, True)
    if bias is not None:
        result = c.add(result, c.value(bias))
    return result if len(shape) == 2 else c.reshape(result, (*shape[:-1], c.shape(result)[-1]))


@lowers("BiasAdd")
def _bias_add(c: Any, x: Any, bias: Any, data_format: Any = 0) -> int:
    value, shift = c.value(x), c.value(bias)
    rank = len(c.shape(value))
    if rank > 2 and data_format in (0, "NCHW"):  # channels are axis 1
        shift = c.reshape(shift, (*c.shape(shift), *(1,) * (rank - 2)))
    return c.add(value, shift)


@lowers("Addmm", "Baddbmm")
def _addmm(c: Any, base: Any, a: Any, b: Any, beta: float = 1, alpha: float = 1) -> int:
    product, addend = matmul(c, c.value(a), c.value(b)), c.value(base)
    product = product if alpha == 1 else c.mul(product, float(alpha))
    return c.add(addend if beta == 1 else c.mul(addend, float(beta)), product)


# ---- softmax and losses --------------------------------------------------------------------------------------------------------------

@lowers("Softmax", once=True)
def _softmax(c: Any, x: Any, axes: Any = -1, *_: Any) -> int:
    value = c.value(x)
    axes = normal_axes(axes, len(c.shape(value)))
    shifted = c.exp(c.sub(value, c.max(value, axes, True)))
    return c.group("softmax", c.div(shifted, c.sum(shifted, axes, True)), (value,), axes)


def log_softmax(c: Any, value: int, axes: tuple[int, ...]) -> int:
    """x - max - ln(sum(e^(x - max)))"""
    shifted = c.sub(value, c.max(value, axes, True))
    total = c.log(c.sum(c.exp(shifted), axes, True))
    return c.group("log_softmax", c.sub(shifted, total), (value,), axes)


@lowers("LogSoftmax", "LogSoftmaxExt", once=True)
def _log_softmax(c: Any, x: Any, axis: Any = -1, dtype: Any = None) -> int:
    value = c.floating(c.value(x))
    return log_softmax(c, value, normal_axes(axis, len(c.shape(value))))


@lowers("LogSumExp", once=True)
def _log_sum_exp(c: Any, x: Any, axes: Any, keepdims: bool = False) -> int:
    value = c.floating(c.value(x))
    axes = normal_axes(axes, len(c.shape(value)))
    peak = c.max(value, axes, True)
    peak = c.group("detached", c.copy(peak), (peak,))  # it cancels out of the gradient
    result = c.add(c.log(c.sum(c.exp(c.sub(value, peak)), axes, True)), peak)
    return result if keepdims else c.reshape(result, tuple(d for i, d in enumerate(c.shape(value)) if i not in axes))


def picked(c: Any, scores: int, labels: int) -> tuple[int, int]:
    """(mask, scores[..., labels] with the last axis as 1): mask is true at each row's label."""
    columns = c.iota((c.shape(scores)[-1],), 0, c.dtype(labels))
    mask = c.equal(columns, c.reshape(labels, (*c.shape(labels), 1)))
    return mask, c.sum(c.select(mask, scores, c.full(0.0, (), c.dtype(scores))), (-1,), True)


@lowers("SparseSoftmaxCrossEntropyWithLogits", once=True)
def _sparse_cross_entropy(c: Any, logits: Any, labels: Any) -> int:
    scores, index = c.value(logits), c.value(labels)
    if getattr(c.primitive, "is_grad", False) or len(c.shape(scores)) != 2:
        raise Unlowerable
    c.check_range(labels, index, c.shape(scores)[-1], "a label")
    _, log_likelihood = picked(c, log_softmax(c, scores, (1,)), index)
    return c.neg(c.mean(log_likelihood, (0, 1)))


@lowers("SoftmaxCrossEntropyWithLogits", once=True)
def _cross_entropy_rows(c: Any, logits: Any, labels: Any) -> tuple[int, int]:
    # Per row: -sum(labels * log_softmax); the second result is the gradient MindSpore computes along with it.
    scores, wanted = c.value(logits), c.value(labels)
    wanted = c.group("detached", c.copy(wanted), (wanted,))  # MindSpore gives labels no gradient
    logs = log_softmax(c, scores, (1,))
    loss = c.neg(c.sum(c.mul(logs, wanted), (1,)))
    return loss, c.sub(c.exp(logs), wanted)


@lowers("NLLLoss", once=True)
def _nll_loss(c: Any, scores: Any, labels: Any, weight: Any, reduction: Any = "mean", ignore_index: int = -100, *_: Any) -> Any:
    value, index, weights = c.value(scores), c.value(labels), c.value(weight)
    if len(c.shape(value)) != 2:
        raise Unlowerable
    mask, chosen = picked(c, value, index)
    zero = c.full(0.0, (), c.dtype(value))
    per_row = c.sum(c.select(mask, c.broadcast(weights, c.shape(value)), zero), (1,))  # 0 where the label is ignored or out of range
    per_row = c.select(c.equal(index, float(ignore_index)), zero, per_row)
    losses = c.neg(c.mul(c.reshape(chosen, c.shape(index)), per_row))
    total = c.sum(per_row, (0,))
    if reduction in ("none", 0):
        return losses, total
    summed = c.sum(losses, (0,))
    return (c.div(summed, total) if reduction in ("mean", 1) else summed), total


@lowers("BCEWithLogitsLoss", once=True)
def _bce_with_logits(c: Any, logits: Any, target: Any, weight: Any = None, positive: Any = None, reduction: Any = 1) -> int:
    x, y = c.value(logits), c.value(target)
    # (1 - y) x + q softplus(-x), q = 1 + (p - 1) y
    soft = softplus(c, c.neg(x))
    if positive is not None:
        soft = c.mul(c.add(c.mul(c.sub(c.value(positive), 1.0), y), 1.0), soft)
    loss = c.add(c.mul(c.sub(1.0, y), x), soft)
    if weight is not None:
        loss = c.mul(loss, c.value(weight))
    return _reduced(c, loss, reduction)


def _reduced(c: Any, loss: int, reduction: Any) -> int:
    # MindSpore's numbers: 0 sum, 1 mean, 2 none
    axes = range(len(c.shape(loss)))
    if reduction in (2, "none"):
        return loss
    return c.mean(loss, axes) if reduction in (1, "mean") else c.sum(loss, axes)


@lowers("MSELossExt", once=True)
def _mse_loss(c: Any, a: Any, b: Any, reduction: Any = 1) -> int:
    difference = c.sub(*unify(c, c.value(a), c.value(b)))
    return _reduced(c, c.mul(difference, difference), reduction)


@lowers("L1LossExt", once=True)
def _l1_loss(c: Any, a: Any, b: Any, reduction: Any = 1) -> int:
    return _reduced(c, c.abs(c.sub(*unify(c, c.value(a), c.value(b)))), reduction)


