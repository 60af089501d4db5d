"""Lowerings of MindSpore's LSTM (one layer, one direction, unrolled over time; cells, and sequences with lengths, come op by op), and of
what turns sequences round."""
from __future__ import annotations

from typing import Any

from .axes import part
from .emit import FLOATS, I64
from .lowering import Unlowerable, lowers


@lowers("LSTM")
def _lstm(c: Any, x: Any, h: Any, cell: Any, weights: Any) -> tuple[int, ...]:
    """x: [time, batch, inputs]. weights: of the inputs, of the state, and the bias, one after the other; each for the gates i, f, g, o."""
    attrs = c.primitive.attrs
    value, flat = c.value(x), c.value(weights)
    if attrs["num_layers"] != 1 or attrs["bidirectional"] or attrs.get("proj_size", 0) or attrs["dropout"] or c.dtype(value) not in FLOATS:
        raise Unlowerable
    time, batch, inputs = c.shape(value)
    hidden = attrs["hidden_size"]
    gates = 4 * hidden
    flat = c.reshape(flat, (c.shape(flat)[0],))
    of_input = c.reshape(part(c, flat, 0, 0, gates * inputs), (gates, inputs))
    of_state = c.reshape(part(c, flat, 0, gates * inputs, gates * hidden), (gates, hidden))
    of_state = c.copy(c.transpose(of_state, (1, 0)))  # turned once, not in every step
    drive = c.matmul(c.reshape(value, (time * batch, inputs)), of_input, False, True)  # all steps at once
    if attrs["has_bias"]:
        drive = c.add(drive, part(c, flat, 0, gates * (inputs + hidden), gates))
    state, memory = (c.reshape(c.value(v), (batch, hidden)) for v in (h, cell))
    states = []
    for t in range(time):
        at = c.add(c.matmul(state, of_state), part(c, drive, 0, t * batch, batch))
        i, f, g, o = (part(c, at, 1, k * hidden, hidden) for k in range(4))
        memory = c.add(c.mul(c.sigmoid(f), memory), c.mul(c.sigmoid(i), c.tanh(g)))
        state = c.mul(c.sigmoid(o), c.tanh(memory))
        states.append(c.reshape(state, (1, batch, hidden)))
    if not states:
        raise Unlowerable
    output = c.concat(states, 0) if len(states) > 1 else c.copy(states[0])
    kept = c.full(0.0, (1, 1), c.dtype(value))  # what MindSpore's own kernels keep for their gradient
    return output, c.reshape(state, (1, batch, hidden)), c.reshape(memory, (1, batch, hidden)), kept, c.copy(kept)


@lowers("ReverseSequence")
def _reverse_sequence(c: Any, x: Any, lengths: Any) -> int:
    """The first lengths[b] steps of sequence b in reverse, the others as they are."""
    attrs = c.primitive.attrs
    value, count = c.value(x), c.value(lengths)
    if (attrs["seq_dim"], attrs["batch_dim"]) not in ((0, 1), (1, 0)):
        raise Unlowerable
    shape = c.shape(value)
    step = c.iota(shape[:2], attrs["seq_dim"], I64)
    extent = c.reshape(c.cast(count, I64), (1, shape[1]) if attrs["batch_dim"] == 1 else (shape[0], 1))
    source = c.select(c.less(step, extent), c.sub(c.sub(extent, 1.0), step), step)
    if attrs["seq_dim"] == 0:
        row = c.add(c.mul(source, float(shape[1])), c.iota(shape[:2], 1, I64))
    else:
        row = c.add(source, c.mul(c.iota(shape[:2], 0, I64), float(shape[1])))
    rows = c.reshape(value, (shape[0] * shape[1], *shape[2:]))
    return c.gather(rows, row, 0)
