"""What the words of `table_ascend` stand for: the arguments of a call, worked out from a descriptor alone, with no library at hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..dtypes import DataType, int32, of
from .descriptors import Descriptor

Shape = tuple[int, ...]


@dataclass(frozen=True)
class View:
    """A tensor argument: `base` is an operand (a, b, c), the result (r) or a temporary. strides in elements. planes: images, in the order
    batch, channels, height, width. extent: it holds indices, each of which must lie in -extent .. extent - 1. distinct: no two of them name
    the same element."""

    base: str
    dtype: DataType
    shape: Shape
    strides: Shape
    offset: int = 0
    planes: bool = False
    extent: int | None = None
    distinct: bool = False


@dataclass(frozen=True)
class Argument:
    """kind: tensor, tensors, scalar, ints, bools, bool, i64, int, i8 or dtype."""

    kind: str
    value: Any


@dataclass(frozen=True)
class Temporary:
    """Memory a template needs besides."""

    name: str
    dtype: DataType
    shape: Shape


def contiguous(shape: Shape) -> Shape:
    """Strides of elements in row-major order."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def _swapped(view: View) -> View:
    shape, strides = list(view.shape), list(view.strides)
    shape[-2:], strides[-2:] = shape[:-3:-1], strides[:-3:-1]
    return View(view.base, view.dtype, tuple(shape), tuple(strides))


def _reshaped(view: View, shape: Shape) -> View:
    return View(view.base, view.dtype, shape, contiguous(shape))


def _permuted(d: Descriptor, view: View) -> View:
    return View(view.base, view.dtype, tuple(view.shape[p] for p in d.attrs), tuple(view.strides[p] for p in d.attrs))


def _stepped(d: Descriptor, view: View, shape: Shape) -> View:
    # SLICE reads, UNSLICE writes at start + step * i along each axis. A view's strides are not negative: what goes backward is seen from
    # its other end, and flipped by the template.
    given = zip(d.attrs[::2], d.attrs[1::2], shape, strict=True)
    pairs = [(start, step) if step > 0 else (start + step * (n - 1), -step) for start, step, n in given]
    starts, steps = [start for start, _ in pairs], [step for _, step in pairs]
    offset = sum(start * stride for start, stride in zip(starts, view.strides, strict=True)) if math.prod(shape) else 0
    return View(view.base, view.dtype, shape, tuple(step * stride for step, stride in zip(steps, view.strides, strict=True)), offset)


def _broadcast(d: Descriptor, view: View) -> View:
    missing = len(d.shape) - len(view.shape)
    strides = tuple(0 if extent == 1 else stride for extent, stride in zip(view.shape, view.strides, strict=True))
    return View(view.base, view.dtype, d.shape, (0,) * missing + strides)


def _merged(d: Descriptor, view: View) -> View:
    # The axes of a reduction are neighbours: of its operand they become one axis, of its result an axis of one element.
    axes, operand = d.attrs[1:], _tensor(d, 0).shape
    if not axes:
        return _reshaped(view, (math.prod(operand) if view.base == "a" else 1,))
    middle = math.prod(operand[axis] for axis in axes) if view.base == "a" else 1
    return _reshaped(view, (*operand[: axes[0]], middle, *operand[axes[-1] + 1 :]))


def _sliced_by_index(d: Descriptor, view: View) -> View:
    # The index's axes as one: the vendor's index has rank 1.
    axis, n = d.attrs[0], math.prod(_tensor(d, 1).shape)
    source = _tensor(d, 0).shape if d.op == "GATHER" else d.shape
    return _reshaped(view, (*source[:axis], n, *source[axis + 1 :]))


def _along(d: Descriptor, view: View) -> View:
    strides = tuple(int(axis == d.attrs[0]) for axis in range(len(d.shape)))
    return View(view.base, view.dtype, d.shape, strides)


def _laid_out(d: Descriptor) -> tuple[Shape, list[tuple[int, int, int]]]:
    # The part of an image that the windows of a convolution see: its shape, and of height and width the first element within it, how many
    # there are, and where the first lies.
    image = _tensor(d, 0).shape
    out, taps = (d.shape, _tensor(d, 1).shape) if d.op == "CONV2D" else (_tensor(d, 1).shape, d.shape)
    stride, before, dilation = _window(d)
    shape, parts = list(image), []
    for axis in range(2):
        gap, extent = d.attrs[6 + axis], (out[2 + axis] - 1) * stride[axis] + dilation[axis] * (taps[2 + axis] - 1) + 1
        first = max(0, -(before[axis] // gap))  # rounded up
        count = max(0, min(image[2 + axis], (extent - 1 - before[axis]) // gap + 1) - first)
        shape[2 + axis] = extent
        parts.append((first, count, before[axis] + first * gap if count else 0))
    return tuple(shape), parts


def _window_view(d: Descriptor, view: View, of_image: bool) -> View:
    _, parts = _laid_out(d)
    steps = (1, 1) if of_image else d.attrs[6:8]
    shape = (*view.shape[:2], *(count for _, count, _ in parts))
    strides = (*view.strides[:2], *(step * stride for step, stride in zip(steps, view.strides[2:], strict=True)))
    starts = [first if of_image else place for first, _, place in parts]
    offset = sum(start * stride for start, stride in zip(starts, view.strides[2:], strict=True)) if math.prod(shape) else 0
    return View(view.base, view.dtype, shape, strides, offset)


_VIEWS: dict[str, Callable[[Descriptor, View], View]] = {
    "transpose_a": lambda d, v: _swapped(v) if d.attrs[0] else v,
    "transpose_b": lambda d, v: _swapped(v) if d.attrs[1] else v,
    "reshaped": lambda d, v: _reshaped(v, d.shape),
    "permuted": _permuted,
    "sliced": lambda d, v: _stepped(d, v, d.shape),
    "unsliced": lambda d, v: _stepped(d, v, _tensor(d, 0).shape),
    "broadcast": _broadcast,
    "merged": _merged,
    "taken": _sliced_by_index,
    "put": _sliced_by_index,
    "along": _along,
    "cropped": lambda d, v: _window_view(d, v, True),
    "placed": lambda d, v: _window_view(d, v, False),
    "first": lambda d, v: View(v.base, v.dtype, d.shape, v.strides),
    "planes": lambda d, v: View(v.base, v.dtype, v.shape, v.strides, planes=True),
}


def _tensor(d: Descriptor, number: int) -> Any:
    operand = d.operands[number]
    assert operand is not None, f"operand {number} of {d} is an immediate"
    return operand


def _index_rows(d: Descriptor) -> View:
    # Of SCATTER, which writes whole slices: the same index for every element of one.
    axis, n = d.attrs[0], math.prod(_tensor(d, 1).shape)
    shape = (*d.shape[:axis], n, *d.shape[axis + 1 :])
    strides = tuple(int(a == axis) for a in range(len(shape)))
    return View("b", _tensor(d, 1).dtype, shape, strides, extent=d.shape[axis], distinct=True)


def _index(d: Descriptor, flat: bool, distinct: bool = False) -> View:
    index = _tensor(d, 1)
    source = _tensor(d, 0).shape if d.op.startswith("GATHER") else d.shape
    shape = (math.prod(index.shape),) if flat else index.shape
    return View("b", index.dtype, shape, contiguous(shape), extent=source[d.attrs[0]], distinct=distinct)


def _even_pads(d: Descriptor) -> bool:
    # Whether the result is what the vendor's formula gives for as many zeros after an image as before it.
    image, out = _tensor(d, 0).shape[2:], d.shape[2:]
    taps = _tensor(d, 1).shape[2:] if d.op == "CONV2D" else d.attrs[:2]
    if d.op == "CONV2D_WEIGHT":
        out, taps = _tensor(d, 1).shape[2:], d.shape[2:]
    elif d.op == "MAX_POOL2D_GRAD":
        out = _tensor(d, 1).shape[2:]
    elif d.op == "AVG_POOL2D_GRAD":
        image, out = out, image
    if d.op.startswith("AVG") and d.attrs[4:6] != d.attrs[6:8]:
        return False
    stride, before, dilation = _window(d)
    return all(
        before[axis] >= 0 and out[axis] == (image[axis] + 2 * before[axis] - dilation[axis] * (taps[axis] - 1) - 1) // stride[axis] + 1
        for axis in range(2)
    )


def _window(d: Descriptor) -> tuple[Shape, Shape, Shape]:
    # strides, zeros before, dilations
    a = d.attrs
    if d.op.startswith("CONV2D"):
        return a[0:2], a[2:4], a[4:6]
    return a[2:4], a[4:6], a[6:8] if d.op.startswith("MAX") else (1, 1)


def _around(d: Descriptor) -> Shape:
    # The vendor's order: the last axis first.
    shape, pads = _tensor(d, 0).shape, []
    for axis in reversed(range(len(shape))):
        pads += [d.attrs[axis], d.shape[axis] - shape[axis] - d.attrs[axis]]
    return tuple(pads)


def _axes(d: Descriptor) -> Shape:
    return d.attrs[1:] or tuple(range(len(_tensor(d, 0).shape)))


_VALUES: dict[str, tuple[str, Callable[[Descriptor], Any]]] = {
    "$": ("scalar", lambda d: (d.imms[0], d.operand_dtype)),
    "one": ("scalar", lambda d: (1, d.operand_dtype)),
    "zero": ("scalar", lambda d: (0, d.operand_dtype)),
    "on": ("scalar", lambda d: (d.imms[0], d.dtype)),
    "off": ("scalar", lambda d: (d.imms[1], d.dtype)),
    "extent": ("scalar", lambda d: (d.shape[d.attrs[0]], d.dtype)),
    "one_i32": ("scalar", lambda d: (1, int32)),
    "zero_i32": ("scalar", lambda d: (0, int32)),
    "extent_i32": ("scalar", lambda d: (d.shape[d.attrs[0]], int32)),
    "axes": ("ints", _axes),
    "backward_axes": ("ints", lambda d: tuple(axis for axis, step in enumerate(d.attrs[1::2]) if step < 0)),
    "around": ("ints", _around),
    "taps": ("ints", lambda d: d.attrs[:2]),
    "strides": ("ints", lambda d: _window(d)[0]),
    "pads": ("ints", lambda d: _window(d)[1]),
    "dilations": ("ints", lambda d: _window(d)[2]),
    "zeros": ("ints", lambda d: (0, 0)),
    "no_ints": ("ints", lambda d: None),
    "weight_only": ("bools", lambda d: (False, True, False)),
    "none": ("tensor", lambda d: None),
    "keepdims": ("bool", lambda d: bool(d.attrs[0])),
    "true": ("bool", lambda d: True),
    "false": ("bool", lambda d: False),
    "exclusive": ("bool", lambda d: bool(d.attrs[1])),
    "reverse": ("bool", lambda d: bool(d.attrs[2])),
    "descending": ("bool", lambda d: bool(d.attrs[-1])),
    "count_padding": ("bool", lambda d: bool(d.attrs[8])),
    "axis": ("i64", lambda d: d.attrs[0]),
    "extreme_axis": ("i64", lambda d: d.attrs[1]),
    "first_axis": ("i64", lambda d: d.attrs[1] if len(d.attrs) > 1 else 0),
    "last_axis": ("i64", lambda d: -1),
    "groups": ("i64", lambda d: d.attrs[8]),
    "divisor": ("i64", lambda d: d.attrs[9]),
    "groups_int": ("int", lambda d: d.attrs[8]),
    "floor": ("int", lambda d: 2),  # the vendor's rounding modes: none, towards zero, down
    "depth": ("int", lambda d: d.attrs[0]),
    "keep_dtype": ("i8", lambda d: 0),  # cubeMathType KEEP_DTYPE: no other precision inside
    "dtype": ("dtype", lambda d: d.dtype),
    "index": ("tensor", lambda d: _index(d, True)),
    "index_rows": ("tensor", _index_rows),
    "index_distinct": ("tensor", lambda d: _index(d, False, True)),
    "replace": ("i64", lambda d: 0),  # reduce: none
    "index_elements": ("tensor", lambda d: _index(d, False)),
    "all": ("tensors", lambda d: tuple(View(f"#{i}", t.dtype, t.shape, contiguous(t.shape)) for i, t in enumerate(d.operands) if t)),
}  # fmt: skip

# Conditions a variant may ask for, and what is the matter where one does not hold.
CONDITIONS: dict[str, tuple[Callable[[Descriptor], bool], str]] = {
    "shift_fits": (
        lambda d: d.operands[1] is None and 0 <= d.imms[0] < 8 * d.operand_dtype.itemsize,
        "a shift by a tensor, or by what is no bit number, has a result here that aclnn does not promise",
    ),
    "matrices": (lambda d: all(2 <= len(t.shape) <= 6 for t in d.operands if t), "matrices of rank 2 to 6 only"),
    "even_pads": (_even_pads, "as many zeros after as before only"),
    "small_pads": (lambda d: all(2 * d.attrs[4 + axis] <= d.attrs[axis] for axis in range(2)), "at most half a window of zeros"),
    "no_gap": (lambda d: d.attrs[6:8] == (1, 1), "no zeros between the elements of an image"),
    "nothing_to_add": (lambda d: any(not math.prod(t.shape) for t in d.operands if t), "operands with elements only"),
    "no_dilation": (lambda d: d.attrs[6:8] == (1, 1), "no dilation"),
    "one_operand": (lambda d: len(d.operands) == 1, "no second operand to be gathered at the largest"),
    "forward_steps": (lambda d: all(step >= 1 for step in d.attrs[1::2]), "no steps backward"),
    "one_hot_result": (lambda d: d.dtype.short in ("f32", "f16", "i32", "i64", "i8", "u8"), "results of f32 f16 i32 i64 i8 u8 only"),
}


def temporaries(d: Descriptor, rows: tuple[str, ...]) -> tuple[Temporary, ...]:
    """What rows like "i i64 a" ask for: a name, a dtype (or whose), a shape (or whose)."""
    whose: dict[str, tuple[DataType, Shape]] = {"r": (d.dtype, d.shape), "single": (d.dtype, (1,)), "one": (d.dtype, ())}
    immediate: tuple[DataType, Shape] = (d.operand_dtype, ())  # a tensor without axes stands for it
    whose |= {name: immediate if t is None else (t.dtype, t.shape) for name, t in zip("abc", d.operands, strict=False)}
    if d.op == "IOTA":
        whose["extent"] = (d.dtype, (d.shape[d.attrs[0]],))
    if "p a window" in rows:
        whose["window"] = (d.dtype, _laid_out(d)[0])
    found = []
    for row in rows:
        name, dtype, shape = row.split()
        found.append(Temporary(name, whose[dtype][0] if dtype in whose else of(dtype), whose[shape][1]))
    return tuple(found)


def argument(d: Descriptor, word: str, extra: tuple[Temporary, ...]) -> Argument:
    """The argument a word stands for. Tensors are `name` or `name:view`."""
    if word in _VALUES:
        kind, value = _VALUES[word]
        return Argument(kind, value(d))
    base, _, view = word.partition(":")
    known: dict[str, tuple[DataType, Shape]] = {"r": (d.dtype, d.shape)} | {t.name: (t.dtype, t.shape) for t in extra}
    known |= {name: (t.dtype, t.shape) for name, t in zip("abc", d.operands, strict=False) if t is not None}
    dtype, shape = known[base]
    plain = View(base, dtype, shape, contiguous(shape))
    return Argument("tensor", _VIEWS[view](d, plain) if view else plain)
