"""Two axes of a tensor, shrunk to what a screen has room for: what a view asks for instead of the whole."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from . import values
from .commands import Answer, Arguments, CommandError, need

MOST_LOOKED_AT = 4 << 20  # elements of a window; of a larger one every n-th row and column is looked at
MOST_CELLS = 1 << 16  # of an answer
_MOST_TEXTS = 1 << 14
SHADES = 126  # of either sign, of a plane in shades
_NAN, _POSITIVE, _NEGATIVE = range(2 * SHADES + 1, 2 * SHADES + 4)  # what is not finite there


@dataclass(frozen=True)
class Window:
    """A part of two axes: rows and columns [first, last), and the cells there may be at most."""
    axes: tuple[int, int]
    indices: tuple[int, ...]
    rows: tuple[int, int]
    columns: tuple[int, int]
    most: tuple[int, int]

    @classmethod
    def read(cls, arguments: Arguments, shape: tuple[int, ...]) -> Window:
        """What a request asks for, fitted into the shape: the shape may have changed since it was asked. Raises CommandError."""
        rank = len(shape)
        default = [rank - 2 if rank > 1 else -1, rank - 1]
        axes = _pair(arguments, "axes", default)
        if axes[0] == axes[1] and rank or any(not -1 <= axis < rank for axis in axes):
            axes = (default[0], default[1])  # asked for a tensor of another rank
        asked = need(arguments, "indices", list, [])
        if any(type(index) is not int for index in asked):
            raise CommandError(f'"indices" is {asked!r}; it must be whole numbers')
        indices = tuple(min(max(0, asked[i] if i < len(asked) else 0), max(0, extent - 1)) for i, extent in enumerate(shape))
        extents = [1 if axis < 0 else shape[axis] for axis in axes]
        rows, columns = (_span(_pair(arguments, name, [0, extent]), extent)
                         for name, extent in zip(("rows", "columns"), extents, strict=True))
        height, width = _pair(arguments, "most", [256, 256])
        if not (1 <= height and 1 <= width and height * width <= MOST_CELLS):
            raise CommandError(f'"most" is {[height, width]}; it must be rows and columns, together at most {MOST_CELLS:,} cells')
        return cls(axes, indices, rows, columns, (height, width))

    def of(self, array: np.ndarray) -> np.ndarray:
        """The window as a view of two axes."""
        kept = tuple(slice(None) if axis in self.axes else self.indices[axis] for axis in range(array.ndim))
        part = np.asarray(array[kept])
        rows, columns = self.axes
        if rows >= 0 and columns >= 0 and rows > columns:
            part = part.T
        elif rows < 0 or columns < 0:
            part = part.reshape((1, -1)) if rows < 0 else part.reshape((-1, 1))
        return part[slice(*self.rows), slice(*self.columns)]

    def index(self, row: int, column: int) -> list[int]:
        """The tensor's index of an element of the window."""
        found = list(self.indices)
        for axis, at in zip(self.axes, (self.rows[0] + row, self.columns[0] + column), strict=True):
            if axis >= 0:
                found[axis] = at
        return found

    @property
    def strides(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """((rows, columns) of the window that make one cell, (every n-th row, column that is looked at))."""
        height, width = self.rows[1] - self.rows[0], self.columns[1] - self.columns[0]
        cell = [max(1, -(-extent // most)) for extent, most in zip((height, width), self.most, strict=True)]
        skip = 1
        while height * width // (min(skip, cell[0]) * min(skip, cell[1])) > MOST_LOOKED_AT and skip < max(cell):
            skip += 1
        skips = min(skip, cell[0]), min(skip, cell[1])
        return (-(-cell[0] // skips[0]) * skips[0], -(-cell[1] // skips[1]) * skips[1]), skips


def plane(window: Window, arrays: list[np.ndarray], code: int, difference: bool = False, shades: bool = False) -> Answer:
    """`data`: cells as float32 (`f64`: float64), row by row; each the strongest of its elements, NaN if one of them is NaN.

    difference: of two arrays the first less the second, 0 where both are the same infinity or NaN, NaN where only one is NaN.
    shades: a cell is one byte, a part of the strongest finite one (`top`), see `in_shades`: a quarter of the way for what is drawn once."""
    cell, skips = window.strides
    looked = [as_numbers(window.of(array)[::skips[0], ::skips[1]], code) for array in arrays]
    exact = difference_of(looked[0], looked[1]) if difference else looked[0]
    cells = _strongest(exact, cell[0] // skips[0], cell[1] // skips[1])
    narrow = not difference and values.dtype_name(code) in ("float32", "float16", "bfloat16", "int8", "uint8", "int16", "uint16", "bool")
    told: Answer = {
        "axes": list(window.axes), "indices": list(window.indices), "rows": list(window.rows), "columns": list(window.columns),
        "height": cells.shape[0], "width": cells.shape[1], "cell": list(cell), "skip": list(skips), "f64": not narrow,
    }
    if shades:
        told["top"], drawn = in_shades(cells)
    else:
        drawn = np.ascontiguousarray(cells, dtype="<f4" if narrow else "<f8")
    told["data"] = values.packed(drawn.tobytes())
    bad = np.flatnonzero(~np.isfinite(exact))
    if bad.size:
        row, column = divmod(int(bad[0]), exact.shape[1])
        told["bad"] = {"count": int(bad.size), "first": window.index(row * skips[0], column * skips[1])}
    return told


def in_shades(cells: np.ndarray) -> tuple[float, np.ndarray]:
    """The size of the strongest finite cell, 0 if there is none; and uint8 of the cells' shape: a cell is (byte - SHADES) / SHADES of it,
    the three bytes above 2 · SHADES are NaN, infinity and its negative."""
    finite = np.isfinite(cells)
    whole = bool(finite.all())
    sizes = np.abs(cells) if whole else np.abs(cells[finite])
    top = float(sizes.max()) if sizes.size else 0.0
    # Divided first: the quotient of a subnormal top would be infinite, and SHADES times a huge cell, too.
    parts = cells / cells.dtype.type(top) if top else np.zeros_like(cells)
    if whole:
        return top, np.rint(parts * SHADES + SHADES).astype(np.uint8)
    drawn = np.rint(np.where(finite, parts, 0) * SHADES + SHADES).astype(np.uint8)
    for which, byte in ((np.isnan(cells), _NAN), (cells == np.inf, _POSITIVE), (cells == -np.inf, _NEGATIVE)):
        drawn[which] = byte
    return top, drawn


def texts(window: Window, array: np.ndarray, code: int) -> list[str]:
    """Every element of the window, as short as its dtype allows without loss. Raises CommandError where that is too much text."""
    part = window.of(array)
    if part.size > _MOST_TEXTS:
        raise CommandError(f"{part.size:,} elements as text are too many: at most {_MOST_TEXTS:,} at once; export the tensor instead")
    return values.texts(part, code, 0, part.size)


def as_numbers(array: np.ndarray, code: int) -> np.ndarray:
    """Real numbers NumPy computes with: complex ones by size; of elements that are several numbers the first."""
    known = values.numbers(array, code)
    if known.ndim > array.ndim:
        known = known[..., 0]
    if known.dtype.kind == "c":
        known = np.abs(known)
    if known.dtype.kind not in "biuf":
        raise CommandError(f"elements of {known.dtype} are no numbers to be drawn")
    return known if known.dtype == np.float32 else known.astype(np.float32 if known.dtype == np.float16 else np.float64)


def difference_of(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """float64; 0 where both are the same infinity or both NaN."""
    with np.errstate(invalid="ignore", over="ignore"):
        made = a.astype(np.float64) - b.astype(np.float64)
    made[(a == b) | (np.isnan(a) & np.isnan(b))] = 0
    return made


def _strongest(array: np.ndarray, rows: int, columns: int) -> np.ndarray:
    if (rows == 1 and columns == 1) or not array.size:
        return array
    high, low = array, array
    for axis, size in ((0, rows), (1, columns)):
        if size > 1:
            high, low = _by_groups(np.maximum, high, axis, size), _by_groups(np.minimum, low, axis, size)
    return np.where(np.abs(high) >= np.abs(low), high, low)  # NaN is neither: it is in both, and low is given


def _by_groups(of_two: np.ufunc, array: np.ndarray, axis: int, size: int) -> np.ndarray:
    """Each `size` neighbours along the axis made one, the last of them perhaps of fewer."""
    if size > 16:
        return of_two.reduceat(array, np.arange(0, array.shape[axis], size), axis)
    lines = np.moveaxis(array, axis, 0)  # small groups: as many passes over long lines, instead of a call for each group
    made = lines[::size].copy()
    for at in range(1, size):
        part = lines[at::size]
        of_two(made[:len(part)], part, out=made[:len(part)])
    return np.moveaxis(made, 0, axis)


def _pair(arguments: Arguments, name: str, default: list[int]) -> tuple[int, int]:
    given: Any = need(arguments, name, list, default)
    if len(given) != 2 or any(type(part) is not int for part in given):
        raise CommandError(f'"{name}" is {given!r}; it must be two whole numbers')
    return given[0], given[1]


def _span(asked: tuple[int, int], extent: int) -> tuple[int, int]:
    first = min(max(0, asked[0]), max(0, extent - 1))
    return first, min(max(first + 1, asked[1]), extent)
