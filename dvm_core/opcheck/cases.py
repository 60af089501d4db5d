"""What each op is tried on: operands of every dtype, attributes and shapes. An op of ops.def without an entry here fails the check."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from .. import _core
from ..dtypes import find

OPS = {name: code for name, code, *_ in _core.OPS}
_CLASS = {name: cls for name, _, cls, *_ in _core.OPS}
DTYPES = ("float32", "float64", "float16", "bfloat16", "int32", "int64", "int8", "uint8", "bool")
SHAPE = (37, 53)
_SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, np.inf, -np.inf, np.nan)


@dataclass(frozen=True)
class Case:
    """One instruction with its operands. dtypes: of the inputs, by name (bfloat16 arrays hold their bits in uint16)."""

    op: str
    inputs: tuple[np.ndarray, ...]
    dtypes: tuple[str, ...]
    attrs: tuple[int, ...] = ()
    shape: tuple[int, ...] | None = None
    dtype: str = ""  # of the result, where the instruction says it
    imms: tuple[float | int, ...] = ()
    immediate: int = -1  # operand that is imms[0]; -1: none

    @property
    def operands(self) -> tuple[int, ...]:
        """Input numbers, -1 for the immediate."""
        found = list(range(len(self.inputs)))
        if self.immediate >= 0:
            found.insert(self.immediate, -1)
        return tuple(found)

    @property
    def main(self) -> str:
        """The dtype it is filed under."""
        return self.dtypes[0] if self.dtypes and self.op != "SELECT" else self.dtypes[-1] if self.dtypes else self.dtype


class Make:
    """Operands of one dtype, the same at every run."""

    def __init__(self, op: str, dtype: str) -> None:
        self.op, self.dtype = op, dtype
        self.random = np.random.default_rng(OPS[op])

    def numbers(self, shape: tuple[int, ...] = SHAPE, special: bool = True) -> np.ndarray:
        """Of both signs and many sizes; NaN, infinities and zeros among them."""
        dtype = find(self.dtype)
        assert dtype is not None
        n = int(np.prod(shape))
        if dtype.kind == "b":
            return self.random.integers(0, 2, shape).astype(np.bool_)
        if dtype.kind == "i":
            return self.random.integers(0 if self.dtype == "uint8" else -9, 10, shape).astype(dtype.numpy)
        x = self.random.standard_normal(n) * 10.0 ** self.random.integers(-2, 2, n)
        if special and n > 100:
            x[: len(_SPECIAL)] = _SPECIAL
        return narrow(x.reshape(shape), self.dtype)

    def of(self, *arrays: np.ndarray, dtypes: tuple[str, ...] = (), **rest: object) -> Case:
        arrays = tuple(np.ascontiguousarray(a) for a in arrays)
        return Case(self.op, arrays, dtypes or (self.dtype,) * len(arrays), **rest)  # type: ignore[arg-type]

    def index(self, shape: tuple[int, ...], extent: int) -> np.ndarray:
        return self.random.integers(-extent, extent, shape).astype(np.int32)


def narrow(x: np.ndarray, dtype: str) -> np.ndarray:
    """float64 rounded to a float dtype; bfloat16 as its bits."""
    if dtype != "bfloat16":
        with np.errstate(all="ignore"):
            return x.astype(dtype)
    bits = np.atleast_1d(x.astype(np.float32)).view(np.uint32).reshape(x.shape)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16  # halves to even
    return np.where(np.isnan(x), 0x7FC0, rounded).astype(np.uint16)


def wide(x: np.ndarray, dtype: str) -> np.ndarray:
    """Floats as float64, others as they are."""
    if dtype == "bfloat16":
        return np.atleast_1d(np.left_shift(x, 16, dtype=np.uint32)).view(np.float32).reshape(x.shape).astype(np.float64)
    return x.astype(np.float64) if x.dtype.kind == "f" else x


def _unary(m: Make) -> Iterator[Case]:
    yield m.of(m.numbers())


def _binary(m: Make) -> Iterator[Case]:
    a = m.numbers()
    yield m.of(a, m.numbers())
    yield m.of(a, m.numbers((SHAPE[0], 1)))
    number = True if m.dtype == "bool" else 3
    yield m.of(a, imms=(number,), immediate=1)
    yield m.of(a, imms=(number,), immediate=0)


def _cast(m: Make) -> Iterator[Case]:
    source = find(m.dtype)
    assert source is not None
    x = m.numbers(special=source.kind != "f")  # NaN and infinities have no integer
    for to in DTYPES:
        if to != "uint8" or source.kind != "f":
            yield m.of(x, dtype=to)


def _select(m: Make) -> Iterator[Case]:
    mask = m.random.integers(0, 2, SHAPE).astype(np.bool_)
    yield m.of(mask, m.numbers(), m.numbers(), dtypes=("bool", m.dtype, m.dtype))


def _reduce(m: Make) -> Iterator[Case]:
    x = m.numbers((7, 37, 53), special=False)
    for attrs in ((0, 2), (1, 1), (0, 0), (0, 0, 1, 2)):
        yield m.of(x[:, :3, :5].copy() if m.op == "PROD" else x, attrs=attrs)


def _matmul(m: Make) -> Iterator[Case]:
    a, b = m.numbers((3, 19, 47), special=False), m.numbers((47, 33), special=False)
    yield m.of(a, b, attrs=(0, 0))
    yield m.of(a, np.ascontiguousarray(b.T), attrs=(0, 1))


def _window(m: Make) -> Iterator[Case]:
    image, weight = m.numbers((2, 4, 9, 11), special=False), m.numbers((6, 2, 3, 3), special=False)
    out = (2, 6, 5, 6)
    conv = (2, 2, 1, 1, 1, 1, 1, 1, 2)  # stride, before, dilation, gap, groups
    largest, mean = (3, 3, 2, 2, 1, 1, 1, 1), (3, 3, 2, 2, 1, 1, 1, 1, 0, 0)
    pooled = (2, 4, 5, 6)
    if m.op == "CONV2D":
        yield m.of(image, weight, attrs=conv, shape=out)
    elif m.op == "CONV2D_WEIGHT":
        yield m.of(image, m.numbers(out, special=False), attrs=conv, shape=weight.shape)
    elif m.op == "MAX_POOL2D":
        yield m.of(image, attrs=largest, shape=pooled)
    elif m.op == "MAX_POOL2D_GRAD":
        yield m.of(image, m.numbers(pooled, special=False), attrs=largest, shape=image.shape)
    elif m.op == "AVG_POOL2D":
        yield m.of(image, attrs=mean, shape=pooled)
    else:
        yield m.of(m.numbers(pooled, special=False), attrs=mean, shape=image.shape)


def _view(m: Make) -> Iterator[Case]:
    x = m.numbers()
    forms = {
        "RESHAPE": ((), (53, 37)),
        "TRANSPOSE": ((1, 0), None),
        "SLICE": ((1, 2, 52, -3), (18, 17)),
        "BROADCAST": ((), (3, 37, 53)),
        "UNSLICE": ((1, 2, 3, 1), (80, 60)),
        "CUMSUM": ((1, 0, 0), None),
    }
    attrs, shape = forms[m.op]
    yield m.of(m.numbers(special=False) if m.op == "CUMSUM" else x, attrs=attrs, shape=shape)
    if m.op == "CUMSUM":
        yield m.of(m.numbers(special=False), attrs=(0, 1, 1))


def _pad(m: Make) -> Iterator[Case]:
    yield m.of(m.numbers(), attrs=(2, 1), shape=(40, 60), imms=(1,))


def _concat(m: Make) -> Iterator[Case]:
    yield m.of(m.numbers(), m.numbers((37, 9)), attrs=(1,))


def _indexed(m: Make) -> Iterator[Case]:
    x, rows = m.numbers(special=False), m.index((41,), 37)
    elements, new = m.index((29, 53), 37), m.numbers((29, 53), special=False)
    both = (m.dtype, "int32")
    if m.op == "GATHER":
        yield m.of(m.numbers(), rows, dtypes=both, attrs=(0,))
    elif m.op == "SCATTER_ADD":
        yield m.of(m.numbers((41, 53), special=False), rows, dtypes=both, attrs=(0,), shape=SHAPE)
    elif m.op == "GATHER_ELEMENTS":
        yield m.of(x, elements, dtypes=both, attrs=(0,))
    elif m.op == "SCATTER_ADD_ELEMENTS":
        yield m.of(new, elements, dtypes=both, attrs=(0,), shape=SHAPE)
    elif m.op == "SCATTER_ELEMENTS":
        yield m.of(x, elements, new, dtypes=(*both, m.dtype), attrs=(0,))
    else:
        yield m.of(x, rows, m.numbers((41, 53), special=False), dtypes=(*both, m.dtype), attrs=(0,))


def _one_hot(m: Make) -> Iterator[Case]:
    yield Case("ONE_HOT", (m.index((41,), 9),), ("int32",), (9,), dtype=m.dtype, imms=(1, 0))


def _order(m: Make) -> Iterator[Case]:
    attrs = {"ARGMAX": (0, 1), "ARGMIN": (1, 0), "SORT": (1, 0), "ARGSORT": (0, 1), "TOPK": (1, 5, 1)}[m.op]
    yield m.of(m.numbers(), attrs=attrs, dtype="" if m.op == "SORT" else "int32")


def _nullary(m: Make) -> Iterator[Case]:
    attrs, imms = {"FULL": ((), (1,)), "IOTA": ((1,), ()), "RANDOM": ((), (7, 11))}[m.op]
    yield Case(m.op, (), (), attrs, SHAPE if m.op != "IOTA" else (3, 99), m.dtype, imms)


# By op, else by class.
_BY_OP: dict[str, Callable[[Make], Iterator[Case]]] = {
    "CAST": _cast,
    "PAD": _pad,
    "CONCAT": _concat,
    "ONE_HOT": _one_hot,
    "MATMUL": _matmul,
    **dict.fromkeys(("CONV2D", "CONV2D_WEIGHT", "MAX_POOL2D", "MAX_POOL2D_GRAD", "AVG_POOL2D", "AVG_POOL2D_GRAD"), _window),
    **dict.fromkeys(("RESHAPE", "TRANSPOSE", "SLICE", "BROADCAST", "UNSLICE", "CUMSUM"), _view),
    **dict.fromkeys(("GATHER", "SCATTER_ADD", "GATHER_ELEMENTS", "SCATTER", "SCATTER_ELEMENTS", "SCATTER_ADD_ELEMENTS"), _indexed),
    **dict.fromkeys(("ARGMAX", "ARGMIN", "SORT", "ARGSORT", "TOPK"), _order),
    **dict.fromkeys(("FULL", "IOTA", "RANDOM"), _nullary),
}
_BY_CLASS = {"U": _unary, "B": _binary, "T": _select, "R": _reduce}


def known(op: str) -> bool:
    """Whether there is anything to try this op on."""
    return op in _BY_OP or _CLASS[op] in _BY_CLASS


def cases(op: str) -> list[Case]:
    """All cases of an op, in every dtype; those it does not take are refused when they are recorded."""
    make = _BY_OP.get(op) or _BY_CLASS[_CLASS[op]]
    return [case for dtype in DTYPES for case in make(Make(op, dtype))]
