"""The table of PyTorch, continued: fused attention. Its second result is the log of each row's sum, which the gradient reads."""
from __future__ import annotations

import math

from .emit import BOOL, I32, Emitter
from .torch_ops import NAMED, Parts, Value, floats, lowers, need


def _scores(e: Emitter, q: Value, k: Value, causal: bool, mask: Value | None, factor: float) -> int:
    scores = e.mul(e.matmul(q, k, transpose_b=True), factor)
    if mask is not None:
        need(e.dtype(mask) != BOOL)
        scores = e.add(scores, mask)
    if causal:
        rows, columns = e.shape(scores)[-2:]
        seen = e.greater_equal(e.iota((rows, columns), 0, I32), e.iota((rows, columns), 1, I32))
        shape = e.shape(scores)
        scores = e.select(e.broadcast(seen, shape), scores, e.full(-math.inf, shape, e.dtype(scores)))
    return scores


def _checked(e: Emitter, q: Value, k: Value, v: Value, dropout: float, mask: Value | None) -> None:
    floats(e, *(t for t in (q, k, v, mask) if t is not None))
    need(dropout == 0 and all(len(e.shape(t)) == 4 for t in (q, k, v)) and e.shape(k)[:2] == e.shape(v)[:2])
    need(e.shape(q)[0] == e.shape(k)[0] and e.shape(q)[1] % e.shape(k)[1] == 0)


def _spread(e: Emitter, a: Value, heads: int) -> Value:
    """Each head for as many heads of queries as share it."""
    batch, own, *rest = e.shape(a)
    if own == heads:
        return a
    return Value(e.reshape(e.broadcast(e.reshape(a, (batch, own, 1, *rest)), (batch, own, heads // own, *rest)), (batch, heads, *rest)))


def _gathered(e: Emitter, g: int, own: int) -> int:
    """The gradient of what was spread."""
    batch, heads, *rest = e.shape(g)
    return g if own == heads else e.sum(e.reshape(g, (batch, own, heads // own, *rest)), (2,))


@lowers("_scaled_dot_product_flash_attention_for_cpu.default")
def attention(e: Emitter, q: Value, k: Value, v: Value, dropout: float = 0.0, causal: bool = False, attn_mask: Value | None = None,
              scale: float | None = None) -> Parts:
    """softmax(q @ k^T * scale + mask) @ v of [batch, heads, rows, channels]; and of each row the log of the sum of e ** score."""
    _checked(e, q, k, v, dropout, attn_mask)
    k, v = (_spread(e, t, e.shape(q)[1]) for t in (k, v))
    scores = _scores(e, q, k, causal, attn_mask, 1 / math.sqrt(e.shape(q)[-1]) if scale is None else float(scale))
    top = e.max(scores, (3,), True)
    if attn_mask is not None:  # a row that sees nothing is zeros in PyTorch, and its second result, too
        top = e.select(e.equal(top, -math.inf), e.full(0.0, e.shape(top), e.dtype(top)), top)
    power = e.exp(e.sub(scores, top))
    total = e.sum(power, (3,), True)
    if attn_mask is not None:
        total = e.select(e.equal(total, 0.0), e.full(1.0, e.shape(total), e.dtype(total)), total)
    return Parts((e.matmul(e.div(power, total), v), e.reshape(e.add(top, e.log(total)), e.shape(scores)[:3])))


@lowers("_scaled_dot_product_flash_attention_for_cpu_backward.default")
def attention_backward(e: Emitter, g: Value, q: Value, k: Value, v: Value, out: Value, sums: Value, dropout: float, causal: bool,
                       attn_mask: Value | None = None, scale: float | None = None) -> Parts:
    """The gradients of q, k and v."""
    _checked(e, q, k, v, dropout, attn_mask)
    floats(e, g, q, out, sums)
    own = e.shape(k)[1]
    k, v = (_spread(e, t, e.shape(q)[1]) for t in (k, v))
    factor = 1 / math.sqrt(e.shape(q)[-1]) if scale is None else float(scale)
    scores = _scores(e, q, k, causal, attn_mask, factor)
    weights = e.exp(e.sub(scores, e.reshape(sums, (*e.shape(sums), 1))))
    level = e.sum(e.mul(g, out), (3,), True)
    of_scores = e.mul(e.mul(weights, e.sub(e.matmul(g, v, transpose_b=True), level)), factor)
    of_k, of_v = e.matmul(of_scores, q, transpose_a=True), e.matmul(weights, g, transpose_a=True)
    return Parts((e.matmul(of_scores, k), _gathered(e, of_k, own), _gathered(e, of_v, own)))


for _name in ("", "_backward"):
    NAMED[f"aten._scaled_dot_product_flash_attention_for_cpu{_name}.default"] = frozenset({"attn_mask", "scale"})
