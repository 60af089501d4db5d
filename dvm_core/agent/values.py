"""Tensor values as the wire carries them: numbers as text, bytes in index order, statistics, slices."""
from __future__ import annotations

import ast
import base64
from typing import Any

import numpy as np
from dvm_wire import syntax

from .. import _core
from ..bf16 import convert_from_bf16
from ..dtypes import BY_CODE, DataType
from . import foreign
from .blocks import in_memory_order
from .bounds import MOST_ELEMENTS

BFLOAT16 = 3  # code of native/types.h
DEFAULT_BYTES = 1 << 20

_CODES = {**foreign.CODES, **{entry.name: entry.code for entry in BY_CODE.values()}}


def code_named(name: str) -> int:
    """The code of a dtype by its name, 0 for one we have no name for."""
    return _CODES.get(name, 0)


def code_of(array: np.ndarray) -> int:
    """The code of a NumPy array's dtype: also of those that other packages add to it, such as bfloat16."""
    return code_named(array.dtype.name)


def entry_of(code: int) -> DataType | foreign.Foreign | None:
    return BY_CODE.get(code) or foreign.BY_CODE.get(code)


def dtype_name(code: int, array: np.ndarray | None = None) -> str:
    entry = entry_of(code)
    return entry.name if entry else str(array.dtype) if array is not None else "?"


def is_encoded(code: int) -> bool:
    """Whether elements are bits that `numbers` decodes: more memory, and time."""
    entry = foreign.BY_CODE.get(code)
    return code == BFLOAT16 or (entry is not None and entry.decode is not None)


def numbers(array: np.ndarray, code: int) -> np.ndarray:
    """The array as numbers NumPy can compute with: what travels as its bits is decoded, bfloat16 to float32. Else a view."""
    if code == BFLOAT16:
        return convert_from_bf16(array) if array.dtype.itemsize == 2 else array
    entry = foreign.BY_CODE.get(code)
    return entry.decode(array) if entry is not None and entry.decode is not None and array.dtype.itemsize == 1 else array


def texts(array: np.ndarray, code: int, start: int, count: int) -> list[str]:
    """Elements start .. start + count in index order, each as short as its dtype allows without loss."""
    start, stop = max(0, start), min(array.size, max(0, start) + max(0, count))
    if start >= stop:
        return []
    # Only the elements asked for are touched: the array may be large, and a view of something larger.
    indices = np.unravel_index(np.arange(start, stop), array.shape) if array.ndim else ()
    picked = numbers(np.atleast_1d(array[indices]), code)
    return [_text(value) for value in picked]


def _text(value: Any) -> str:
    if isinstance(value, np.ndarray):  # one element that is several numbers
        return f"({', '.join(map(_text, value))})"
    if isinstance(value, np.floating):
        if np.isnan(value):
            return "NaN"
        if np.isinf(value):
            return "Inf" if value > 0 else "-Inf"
    return str(value)


def contiguous(array: np.ndarray, offset: int, count: int) -> bytes:
    """Bytes offset .. offset + count of the elements in index order, whatever the strides; shorter at the end."""
    size = array.dtype.itemsize
    first, last = max(0, offset), min(array.nbytes, max(0, offset) + max(0, count))
    if first >= last:
        return b""
    if array.flags.c_contiguous:
        return array.reshape(-1).view(np.uint8)[first:last].tobytes()
    begin, end = first // size, -(-last // size)
    part = np.ascontiguousarray(array[np.unravel_index(np.arange(begin, end), array.shape)])
    return part.view(np.uint8)[first - begin * size:last - begin * size].tobytes()


def packed(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def statistics(array: np.ndarray, code: int) -> dict[str, Any]:
    """count, finite, zero, nan, pos_inf, neg_inf, min, max, mean, std, histogram. Of an empty tensor and of complex numbers only counts."""
    array = in_memory_order(array)  # the core copies what does not lie side by side
    if code not in BY_CODE:
        return _foreign_statistics(array, code)
    stats = _core.stats_of(array if code == BFLOAT16 and array.dtype == np.uint16 else numbers(array, code))
    return {key: value for key, value in stats.items() if array.size or key not in ("min", "max", "mean", "std")}


def _foreign_statistics(array: np.ndarray, code: int) -> dict[str, Any]:
    if array.size > MOST_ELEMENTS:  # they are converted for it
        return {}
    known = numbers(array, code)
    if known.dtype.kind == "c":
        nan = np.isnan(known)
        return {"count": known.size, "finite": int(np.isfinite(known).sum()), "zero": int((known == 0).sum()), "nan": int(nan.sum())}
    if known.dtype.kind not in "biuf":
        return {}
    exact = known.astype(np.float64 if known.dtype == np.uint64 or known.dtype.kind == "f" else np.int64)
    return statistics(exact, code_of(exact))


def figure(value: Any) -> str:
    """Three significant digits; whole numbers as they are."""
    value = float(value)
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Inf" if value > 0 else "-Inf"
    return f"{int(value)}" if value == int(value) and abs(value) < 1e6 else f"{value:.3g}"


def summary(code: int, shape: tuple[int, ...], stats: dict[str, Any] | None, array: np.ndarray | None = None) -> str:
    """One line: `f32[32,64]  min -3.2  max 4.1  mean 0.02  std 1.1`, with counts of what is not finite; a single element as its value."""
    entry = entry_of(code)
    words = [f"{entry.short if entry else dtype_name(code, array)}[{','.join(map(str, shape))}]"]
    if array is not None and array.size == 1:
        return f"{words[0]}  {texts(array, code, 0, 1)[0]}"
    if array is not None and array.size == 0:
        return f"{words[0]}  no elements"
    if stats and stats.get("finite", 1):
        words += [f"{name} {figure(stats[name])}" for name in ("min", "max", "mean", "std") if name in stats]
    if stats:
        words += [f"{label} {stats[key]}" for key, label in (("nan", "NaN"), ("pos_inf", "+Inf"), ("neg_inf", "-Inf")) if stats.get(key)]
    return "  ".join(words)


class BadSlice(ValueError):
    """A slice that cannot be meant."""


def parse_slice(text: str) -> tuple[Any, ...]:
    """`0, :, 3:5` or `[0, :, 3:5]`: integers, ranges, `...`. Raises BadSlice."""
    inner = text.strip()
    if inner.startswith("[") and inner.endswith("]"):
        inner = inner[1:-1]
    try:
        node = syntax.parse(f"_[{inner or '...'}]", mode="eval").body
        assert isinstance(node, ast.Subscript)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return tuple(_index(part) for part in parts)
    except (SyntaxError, ValueError, AssertionError):
        raise BadSlice(f"a slice is integers and ranges, such as `0, :, 3:5`; this is {text!r}") from None


def _index(node: ast.AST) -> Any:
    if isinstance(node, ast.Slice):
        return slice(*(None if part is None else _whole(part) for part in (node.lower, node.upper, node.step)))
    if isinstance(node, ast.Constant) and node.value is ...:
        return ...
    return _whole(node)


def _whole(node: ast.AST) -> int:
    value = ast.literal_eval(node)
    if type(value) is not int:
        raise ValueError("not an integer")
    return value


def sliced(array: np.ndarray, text: str) -> np.ndarray:
    """A view. Raises BadSlice, also for an index out of range."""
    try:
        index = parse_slice(text)
        return array[index]
    except BadSlice:
        raise
    except (IndexError, ValueError) as error:  # out of range; a step of 0
        raise BadSlice(f"{text!r} does not fit the shape {list(array.shape)}: {error}") from None
