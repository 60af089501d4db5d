"""What DVM's release build lets pass in silence, as data: each misuse, what a strict device says about it, what a faithful one does.

Strict are the cpu and `npu-sim:…`: the error has the rule's name, the user's line and what to do. Faithful (`npu-sim:…:faithful`) does what
is published about the hardware, so that a user sees the same wrong numbers. docs/devices.md has this table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..dtypes import DataType


class Rule(NamedTuple):
    """One misuse."""

    name: str
    what: str  # for the documents
    strict: str  # the error's text, a format of the values named in it
    faithful: str  # refuse, null, bytes, encode or apart, see FAITHFUL
    result: str  # what a faithful device gives, for the documents
    published: str = ""  # DVM's own words where it has an error of its own


RULES = (
    Rule(
        "mixed-dtypes",
        "two tensors of different dtypes in one op",
        "operands are {first} and {other}, and nothing is promoted between tensors; cast one of them, for instance k.cast(x, {cast})",
        "bytes",
        "the second operand's bytes are read as the first one's dtype, as if it were one tile; past their end come zeros "
        "(on a chip what lay there)",
    ),
    Rule(
        "mixed-cube",
        "the same in a product, `concat` or `logical_and`",
        "operands are {first} and {other}, and nothing is promoted between tensors; cast one of them, for instance k.cast(x, {cast})",
        "refuse",
        "an error: what a chip gives is not published",
    ),
    Rule(
        "sum-dtype",
        "`sum` of anything but float32",
        "sum takes {allowed}, got {dtype}; cast it first, for instance k.cast(x, {cast})",
        "null",
        "`sum` gives None, and what takes that fails",
    ),
    Rule(
        "reduce-dtype",
        "`max` or `min` over axes of anything but float32 and float16",
        "{reduction} takes {allowed}, got {dtype}; cast it first, for instance k.cast(x, {cast})",
        "null",
        "None, as `sum` gives",
    ),
    Rule(
        "int64-op",
        "`mul`, `maximum`, `minimum`, `div`, `pow`, `abs` of int64",
        "takes {allowed}, got {dtype}; cast it first, for instance k.cast(x, {cast})",
        "refuse",
        "DVM's own error",
        "int64 binary op not supported",
    ),
    Rule(
        "op-dtype",
        "an op of a dtype it has no instruction for (`sqrt` of int32, indices of `one_hot` that are int64 ...)",
        "takes {allowed}, got {dtype}; cast it first, for instance k.cast(x, {cast})",
        "refuse",
        "an error: what a chip gives is not published",
    ),
    Rule(
        "number-range",
        "a number beside a tensor of integers that its dtype does not hold (0.5, 2^40)",
        "the number {number!r} does not fit a tensor of {dtype}; cast the tensor to float32 first",
        "encode",
        "encoded: cut towards zero, then its lowest bits",
    ),
    Rule(
        "chip-dtype",
        "an op of a dtype that this chip lacks and another device has (float64, a float32 product)",
        "{chip} ({arch}) has no {what}; {instead}",
        "refuse",
        "an error: there is no such instruction",
    ),
    Rule(
        "chip-op",
        "an op that this chip lacks (`gather_load` on c220)",
        "{chip} ({arch}) has no {what}; {instead}",
        "refuse",
        "DVM's own error",
        "GatherLoad only supports C310.",
    ),
    Rule(
        "broadcast-groups",
        "more than four groups of axes stretched at once",
        "{source} to {wanted} stretches {groups} groups of axes, {chip} stretches at most 4; broadcast it in two steps",
        "refuse",
        "DVM's own error",
        "multi-broadcast rank exceed max limit(4)",
    ),
    Rule(
        "mix-second-cube",
        "a second matmul in a *mix* kernel",
        "only one cube op in mix-kernel; a split kernel takes any number",
        "refuse",
        "DVM's own error",
        "only one cube op in mix-kernel",
    ),
    Rule(
        "mix-follow",
        "work that is not elementwise behind the matmul of a *mix* kernel, on an NPU",
        "stands behind the matmul of a mix kernel, where {chip} has only elementwise work; make it a split kernel",
        "refuse",
        "an error: what a chip gives is not published",
    ),
    Rule(
        "alias",
        "an output (`set_output`) over part of an input that is still read",
        "bytes {first} to {last} of the array given for it are also those of {load}, which is read while they are written; "
        "give it an array of its own, or exactly the input's",
        "apart",
        "NumPy arrays are copied to the chip and back, each for itself: as if they lay apart",
    ),
    Rule(
        "view-store-base",
        "`view_store` without an array to write into",
        "a view store needs a contiguous array to write into: give it with set_output",
        "refuse",
        "an error; with an array, what lies between the strides keeps its content on every device",
    ),
)
BY_NAME = {rule.name: rule for rule in RULES}


def reinterpreted(array: np.ndarray, dtype: DataType) -> np.ndarray:
    """An array's bytes as elements of another dtype, as many as it has; zeros where its bytes end."""
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    wanted = np.zeros(array.size * dtype.itemsize, np.uint8)
    count = min(data.size, wanted.size)
    wanted[:count] = data[:count]
    return ((wanted != 0) if dtype.kind == "b" else wanted.view(dtype.numpy)).reshape(array.shape)


def encoded(number: float | int, dtype: DataType) -> int:
    """A number as an integer dtype's bits hold it: cut towards zero, the lowest bits of that. Infinities become the ends, NaN 0."""
    if number != number:
        return 0
    if number in (float("inf"), float("-inf")):
        return dtype.range[number > 0]
    return dtype.wrapped(int(number))


# What a faithful device makes of a misuse: what stands for the operand or the number. None: it is an error there, too.
FAITHFUL: dict[str, Callable[..., object] | None] = {
    "refuse": None,
    "null": lambda *_: None,
    "bytes": reinterpreted,
    "encode": encoded,
    "apart": lambda array: array,
}
