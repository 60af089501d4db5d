"""What a view asks about one tensor, or two: a part that fits a screen, statistics, text, the difference."""
from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING

import numpy as np

from ..dtypes import BY_CODE
from . import planes, values
from .blocks import blocks
from .commands import Answer, Arguments, CommandError, Reply, command, need
from .kept import array_of
from .planes import Window
from .tensors import Tensor, asked, still

if TYPE_CHECKING:
    from .session import Session

_AT_ONCE = 1 << 16  # elements compared: the passes over them stay in the caches, which halves the time


@command("view", later=True)
def view(session: Session, arguments: Arguments, reply: Reply) -> None:
    """The tensor without its bytes, a `plane` of it, the snapshots its watch keeps as `kept`; with `texts` each of its elements as text.

    axes, indices, rows, columns, most: as in planes.Window; shades: as in planes.plane."""
    tensor, array, kept = _tensor(session, arguments)
    told = {**tensor.describe(with_stats=False), **kept}
    if array is None:
        return reply({**told, "placeholder": True})
    window = Window.read(arguments, array.shape)

    def made() -> Answer:
        try:
            shown = {"plane": planes.plane(window, [array], tensor.dtype, shades=bool(arguments.get("shades")))}
        except CommandError as error:
            return {**told, "placeholder": True, "reason": str(error)}
        return {**told, **shown, **({"texts": planes.texts(window, array, tensor.dtype)} if arguments.get("texts") else {})}

    session.aside.do("view", array.nbytes, reply, still(session, arguments, made))


@command("viewStats", later=True)
def view_statistics(session: Session, arguments: Arguments, reply: Reply) -> None:
    tensor, array, kept = _tensor(session, arguments)
    if array is None:
        raise CommandError(f"{tensor.name} is {tensor.reason}")
    session.aside.do("viewStats", array.nbytes, reply, still(session, arguments, lambda: {"stats": tensor.statistics(array), **kept}))


@command("compare", later=True)
def compare(session: Session, arguments: Arguments, reply: Reply) -> None:
    """`a` less `b`, each named as in `view`, or bytes of another process: `data`, `dtype`, `shape`. Over the tolerance is what differs by
    more than `tolerance` + `relative` · |b|. NaN equals NaN, an infinity itself."""
    (first, a, _), (second, b, _) = (_tensor(session, need(arguments, side, dict)) for side in ("a", "b"))
    for tensor, array in ((first, a), (second, b)):
        if array is None:
            raise CommandError(f"{tensor.name} is {tensor.reason}")
    assert a is not None and b is not None
    if a.shape != b.shape:
        raise CommandError(f"the shapes differ, {list(a.shape)} and {list(b.shape)}: there is no difference of elements")
    window, tolerance, relative = (Window.read(arguments, a.shape), *(_positive(arguments, name) for name in ("tolerance", "relative")))
    decoded = [(array, tensor.dtype) for array, tensor in ((a, first), (b, second))]

    def made() -> Answer:
        code = first.dtype if first.dtype == second.dtype else values.code_named("float64")
        pair = [a, b] if first.dtype == second.dtype else [planes.as_numbers(array, kind) for array, kind in decoded]
        return {"dtypes": [values.dtype_name(tensor.dtype) for tensor in (first, second)], "shape": list(a.shape),
                **difference(decoded, tolerance, relative), "plane": planes.plane(window, pair, code, difference=True)}

    both = still(session, arguments["a"], still(session, arguments["b"], made))
    session.aside.do("compare", a.nbytes + b.nbytes, reply, both)


def difference(pair: list[tuple[np.ndarray, int]], tolerance: float, relative: float) -> Answer:
    """Counts and the largest difference of two arrays of one shape: `elements`, `differ`, `over`, `mean` (of the finite differences'
    sizes), `nan` (`a`: only in the first, `b`, `both`), `largest` (`value`, `index`, `a`, `b`), `first` index where only one is NaN,
    `firstDiffering` index."""
    by_rows = not all(array.flags.c_contiguous for array, _ in pair)
    differ = over = finite = nan_a = nan_b = nan_both = 0
    total, top, at, only, other = 0.0, -1.0, 0, -1, -1
    for parts in zip(*(blocks(array, _AT_ONCE, by_rows) for array, _ in pair), strict=True):
        x, y = (planes.as_numbers(part, code) for (_, part), (_, code) in zip(parts, pair, strict=True))
        size = np.abs(planes.difference_of(x, y))
        one = np.isnan(size)
        bound = tolerance + relative * np.abs(np.where(np.isfinite(y), y, 0)) if relative else tolerance
        differ += int(np.count_nonzero(size))  # NaN counts too
        over += int(np.count_nonzero(~(size <= bound)))
        nan_a, nan_b = nan_a + int(np.count_nonzero(one & np.isnan(x))), nan_b + int(np.count_nonzero(one & np.isnan(y)))
        nan_both += int(np.count_nonzero(np.isnan(x) & np.isnan(y)))
        if other < 0 and size.any():
            other = parts[0][0] + int((size != 0).argmax())
        known = size[np.isfinite(size)]
        finite, total = finite + known.size, total + float(known.sum())
        size[one] = -1
        best = int(size.argmax())
        if size[best] > top:
            top, at = float(size[best]), parts[0][0] + best
        if only < 0 and one.any():
            only = parts[0][0] + int(one.argmax())
    shape, count = pair[0][0].shape, pair[0][0].size
    told: Answer = {"elements": count, "differ": differ, "over": over, "mean": total / finite if finite else 0.0,
                    "nan": {"a": nan_a, "b": nan_b, "both": nan_both}, "tolerance": tolerance, "relative": relative}
    if top >= 0:
        index = [int(i) for i in np.unravel_index(at, shape)]
        a, b = (values.texts(array[tuple(slice(i, i + 1) for i in index)], code, 0, 1)[0] for array, code in pair)
        told["largest"] = {"value": top, "index": index, "a": a, "b": b}
    if other >= 0:
        told["firstDiffering"] = [int(i) for i in np.unravel_index(other, shape)]
    if only >= 0:
        told["first"] = [int(i) for i in np.unravel_index(only, shape)]
    return told


def _tensor(session: Session, arguments: Arguments) -> tuple[Tensor, np.ndarray | None, Answer]:
    """The tensor, its values, and what a watch keeps of it. Raises CommandError."""
    if arguments.get("data") is not None:
        tensor = _sent(arguments)
        return tensor, tensor.array(), {}
    tensor = asked(session, arguments)
    if arguments.get("watch") is None:
        return tensor, tensor.array(), {"ref": arguments.get("ref"), "step": session.step()}
    snapshot = session.kept.get(arguments["watch"], need(arguments, "snapshot", int, None))
    return tensor, tensor.array(), {**snapshot.told(), "kept": session.kept.all(arguments["watch"])}


def _sent(arguments: Arguments) -> Tensor:
    code, shape = values.code_named(need(arguments, "dtype", str)), tuple(need(arguments, "shape", list))
    if code not in BY_CODE or not all(type(extent) is int and extent >= 0 for extent in shape):
        raise CommandError(f"{arguments['dtype']}{list(shape)} is no tensor that can be compared")
    try:
        data = base64.b64decode(need(arguments, "data", str), validate=True)
        array = array_of(data, code, shape)
    except (binascii.Error, ValueError) as error:
        raise CommandError(f"the bytes sent are no {arguments['dtype']}{list(shape)}: {error}") from None
    return Tensor(str(arguments.get("name") or "the other"), code, shape, lambda: array)


def _positive(arguments: Arguments, name: str) -> float:
    given = need(arguments, name, (int, float), 0.0)
    if isinstance(given, bool) or not 0 <= given < float("inf"):
        raise CommandError(f"{name} is {given!r}; it must be a number from 0 on")
    return float(given)

