"""Programs for the native core as plain data: recorded into a Graph in many ways, and checked against NumPy in float64."""
from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from halves import EPS, LEAST, TOP, rounded, widen
from philox import uniform
from window_reference import WINDOWS

from dvm_core import _core

OP = {name: code for name, code, *_ in _core.OPS}
NAME = {code: name for name, code, *_ in _core.OPS}
CLASS = {name: cls for name, _, cls, *_ in _core.OPS}
CODE = {name: code for name, code, _ in _core.DTYPES}
DTYPE = {code: np.dtype(name) for name, code, _ in _core.DTYPES if name != "bfloat16"}


BFLOAT16 = np.dtype(np.uint16)  # how its bits travel; nothing else in a program is uint16


def name_of(dtype) -> str:
    return "bfloat16" if np.dtype(dtype) == BFLOAT16 else np.dtype(dtype).name


def code(dtype) -> int:
    return CODE[name_of(dtype)]


def is_float(dtype) -> bool:
    return np.dtype(dtype).kind == "f" or np.dtype(dtype) == BFLOAT16


def numbers_of(array: np.ndarray) -> np.ndarray:
    """Floats as float64, others as they are."""
    if array.dtype == BFLOAT16:
        array = widen(array, "bfloat16")
    return array.astype(np.float64) if array.dtype.kind == "f" else array


@dataclass
class Step:
    """One instruction; operands are value ids (inputs first), -1 is the immediate."""

    op: str
    operands: tuple[int, ...]
    attrs: tuple[int, ...] = ()
    shape: tuple[int, ...] | None = None
    dtype: int = 0
    imms: tuple = ()


@dataclass
class Program:
    inputs: list[np.ndarray] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)

    def input(self, array: np.ndarray) -> int:
        assert not self.steps, "inputs come first"
        self.inputs.append(array)
        return len(self.inputs) - 1

    def op(self, op: str, *operands: int, attrs=(), shape=None, dtype=0, imms=()) -> int:
        self.steps.append(Step(op, operands, tuple(attrs), shape, dtype, tuple(imms)))
        return len(self.inputs) + len(self.steps) - 1


@dataclass
class Recorded:
    """A graph with a program's values recorded in it; `ids` maps the program's value ids to the graph's."""

    graph: _core.Graph
    ids: list[int]

    def array(self, value: int) -> np.ndarray:
        array = self.graph.array(self.ids[value])
        assert array is not None, f"value {value} is not in memory"
        return array.copy()


def input_of(graph, array: np.ndarray) -> int:
    strides = tuple(s // array.itemsize for s in array.strides)
    return graph.input(array.ctypes.data, array.shape, code(array.dtype), strides, array)


def record(program: Program, graph, ids: list[int], steps) -> None:
    for s in steps:
        operands = tuple(ids[o] if o >= 0 else -1 for o in s.operands)
        ids.append(graph.op(OP[s.op], operands, s.attrs, s.shape, s.dtype, s.imms))


def run(program: Program, keep, name: str = "test", cuts=()) -> tuple[Recorded, list]:
    """Records and flushes the program; `cuts`: steps before which everything so far is flushed with all values kept."""
    graph = _core.Graph(name)
    ids = [input_of(graph, a) for a in program.inputs]
    launches, at = [], 0
    for cut in [*sorted(cuts), len(program.steps)]:
        record(program, graph, ids, program.steps[at:cut])
        at = cut
        kept = [ids[v] for v in keep] if cut == len(program.steps) else ids[len(program.inputs):]
        kept = [v for v in kept if v in range(graph.size()) and not graph.in_memory(v)]
        launches.append(graph.flush(kept))
    return Recorded(graph, ids), launches


# ---- what NumPy says of one instruction, given its operands -------------------------------------------------------------------------


def _erf(x):
    import math
    return np.vectorize(math.erf, otypes=[np.float64])(x)


UNARY = {
    "NEG": np.negative, "ABS": np.abs, "EXP": np.exp, "LOG": np.log, "SQRT": np.sqrt, "RSQRT": lambda x: 1 / np.sqrt(x),
    "RECIPROCAL": lambda x: 1 / x, "TANH": np.tanh, "ERF": _erf, "SIGMOID": lambda x: 1 / (1 + np.exp(-x)), "SIN": np.sin, "COS": np.cos,
    "FLOOR": np.floor, "CEIL": np.ceil, "ROUND": np.rint, "TRUNC": np.trunc, "IS_FINITE": np.isfinite,
    "LOGICAL_NOT": np.logical_not, "COPY": lambda x: x, "LOG1P": np.log1p,
    "EXPM1": np.expm1, "TAN": np.tan, "ATAN": np.arctan, "SIGN": np.sign, "IS_NAN": np.isnan, "IS_INF": np.isinf, "BIT_NOT": np.invert,
}


def _shift(left):
    def shift(a, b):
        bits = 8 * a.dtype.itemsize
        by = np.where((b >= 0) & (b < bits), b, 0)
        shifted = np.left_shift(a, by) if left else np.right_shift(a, by)
        return np.where(by == b, shifted, 0 if left else np.where(a < 0, -1, 0)).astype(a.dtype)
    return shift


def _divide(a, b):
    if a.dtype.kind == "f":
        return a / b
    return np.where(b == 0, 0, np.floor_divide(a, np.where(b == 0, 1, b)))


BINARY = {
    "ADD": np.add, "SUB": np.subtract, "MUL": np.multiply, "DIV": _divide, "POW": np.power, "MAXIMUM": np.maximum, "MINIMUM": np.minimum,
    "EQUAL": np.equal, "NOT_EQUAL": np.not_equal, "LESS": np.less, "LESS_EQUAL": np.less_equal, "GREATER": np.greater,
    "GREATER_EQUAL": np.greater_equal, "LOGICAL_AND": np.logical_and, "LOGICAL_OR": np.logical_or,
    "FMOD": np.fmod, "REMAINDER": np.remainder, "BIT_AND": np.bitwise_and, "BIT_OR": np.bitwise_or, "BIT_XOR": np.bitwise_xor,
    "SHIFT_LEFT": _shift(True), "SHIFT_RIGHT": _shift(False),
}
REDUCE = {"PROD": np.prod, "SUM": np.sum, "MAX": np.max, "MIN": np.min, "MEAN": np.mean}


def _reduce(s: Step, x):
    fn = REDUCE[s.op]
    if x.dtype == bool:
        fn = {"SUM": np.any, "MAX": np.any, "MIN": np.all, "PROD": np.all}[s.op]
    return fn(x, axis=s.attrs[1:], keepdims=bool(s.attrs[0]))


def _slices(s: Step, extents):
    def one(i, n):
        start, step = s.attrs[2 * i], s.attrs[2 * i + 1]
        return start + step * np.arange(n)
    return np.ix_(*[one(i, n) for i, n in enumerate(extents)])


def _matmul(s: Step, a, b):
    a = np.swapaxes(a, -1, -2) if s.attrs[0] else a
    b = np.swapaxes(b, -1, -2) if s.attrs[1] else b
    return np.matmul(a, b)


def _scatter_add(s: Step, a, index):
    out = np.zeros(s.shape, a.dtype)
    axis = s.attrs[0]
    moved = np.moveaxis(out, axis, 0)
    flat = np.moveaxis(a, range(axis, axis + index.ndim), range(index.ndim)).reshape((index.size,) + moved.shape[1:])
    np.add.at(moved, index.reshape(-1), flat)
    return out


def _unslice(s: Step, a):
    out = np.zeros(s.shape, a.dtype)
    out[_slices(s, a.shape)] = a
    return out


def _pad(s: Step, a):
    out = np.full(s.shape, s.imms[0]).astype(a.dtype)
    out[tuple(slice(n, n + extent) for n, extent in zip(s.attrs, a.shape, strict=True))] = a
    return out


def _cumsum(s: Step, a):
    axis, exclusive, reverse = s.attrs
    a = np.flip(a, axis) if reverse else a
    out = np.cumsum(a, axis, dtype=a.dtype)
    if exclusive:
        out = np.roll(out, 1, axis)
        np.moveaxis(out, axis, 0)[:1] = 0
    return np.flip(out, axis) if reverse else out


def _fibres(index, axis):
    """Index arrays that name element index[..., i, ...] along an axis."""
    return tuple(index if i == axis else grid for i, grid in enumerate(np.indices(index.shape)))


def _scatter(s: Step, a, index, new):
    out, axis = a.copy(), s.attrs[0]
    moved = np.moveaxis(out, axis, 0)
    flat = np.moveaxis(new, range(axis, axis + index.ndim), range(index.ndim)).reshape((index.size, *moved.shape[1:]))
    for i, at in enumerate(index.reshape(-1)):
        moved[at] = flat[i]
    return out


def _scatter_elements(s: Step, a, index, new):
    out = np.moveaxis(a, s.attrs[0], 0).copy()
    places, values = np.moveaxis(index, s.attrs[0], 0), np.moveaxis(new, s.attrs[0], 0)
    for i in range(places.shape[0]):  # the last one stays
        others = np.indices(places.shape[1:])
        out[(places[i], *others)] = values[i]
    return np.moveaxis(out, 0, s.attrs[0])


def _scatter_add_elements(s: Step, a, index):
    out = np.zeros(s.shape, a.dtype)
    np.add.at(out, _fibres(np.where(index < 0, index + s.shape[s.attrs[0]], index), s.attrs[0]), a)
    return out


def _descending_argsort(a, axis):
    # stable: the last of the reversed ones comes first
    n = a.shape[axis]
    return n - 1 - np.flip(np.argsort(np.flip(a, axis), axis, kind="stable"), axis)


def _argsort(s: Step, a, attrs=None):
    axis, descending = attrs or s.attrs
    return _descending_argsort(a, axis) if descending else np.argsort(a, axis, kind="stable")


def _sort(s: Step, a):
    return np.take_along_axis(a, _argsort(s, a), s.attrs[0])


def _topk(s: Step, a):
    axis, k, descending = s.attrs
    return np.take(_argsort(s, a, (axis, descending)), range(k), axis)


def _arg_extreme(fn):
    return lambda s, a: fn(a, axis=s.attrs[1], keepdims=bool(s.attrs[0]))


def _iota(s: Step):
    shape = [1] * len(s.shape)
    shape[s.attrs[0]] = -1
    return np.broadcast_to(np.arange(s.shape[s.attrs[0]]).reshape(shape), s.shape)


def _one_hot(s: Step, index):
    on, off = s.imms
    return np.where(index[..., None] == np.arange(s.attrs[0]), on, off)


def reference(s: Step, operands: list[np.ndarray], dtype: np.dtype) -> np.ndarray:
    """The result in float64 (floats), or exactly (integers and bool), from the operands as they are."""
    kind, operands = operands[0].dtype if operands else dtype, [numbers_of(o) for o in operands]
    if -1 in s.operands:
        imm = rounded(s.imms[0], name_of(kind)) if name_of(kind) in EPS else np.asarray(s.imms[0]).astype(kind)
        operands.insert(s.operands.index(-1), numbers_of(imm))
    with np.errstate(all="ignore"):
        if s.op in UNARY:
            out = UNARY[s.op](*operands)
        elif s.op in BINARY:
            out = BINARY[s.op](*operands)
        elif s.op in REDUCE:
            out = _reduce(s, *operands)
        else:
            out = {
                "CAST": lambda s, x: np.trunc(x) if not is_float(dtype) and dtype != np.bool_ and x.dtype.kind == "f" else x,
                "SELECT": lambda s, c, a, b: np.where(c, a, b),
                "MATMUL": _matmul,
                "RESHAPE": lambda s, x: x.reshape(s.shape),
                "TRANSPOSE": lambda s, x: x.transpose(s.attrs),
                "SLICE": lambda s, x: x[_slices(s, s.shape)] if x.ndim else x,
                "BROADCAST": lambda s, x: np.broadcast_to(x, s.shape),
                "CONCAT": lambda s, *xs: np.concatenate(xs, s.attrs[0]),
                "UNSLICE": _unslice,
                "GATHER": lambda s, x, i: np.take(x, i, axis=s.attrs[0]),
                "SCATTER_ADD": _scatter_add,
                "ONE_HOT": _one_hot,
                "PAD": _pad,
                "CUMSUM": _cumsum,
                "GATHER_ELEMENTS": lambda s, x, i: x[_fibres(i, s.attrs[0])],
                "SCATTER": _scatter,
                "SCATTER_ELEMENTS": _scatter_elements,
                "SCATTER_ADD_ELEMENTS": _scatter_add_elements,
                "ARGMAX": _arg_extreme(np.argmax),
                "ARGMIN": _arg_extreme(np.argmin),
                "SORT": _sort,
                "ARGSORT": _argsort,
                "TOPK": _topk,
                "RANDOM": lambda s: uniform(s.shape, *s.imms, dtype),
                "FULL": lambda s: np.full(s.shape, s.imms[0]),
                "IOTA": _iota,
                **WINDOWS,
            }[s.op](s, *operands)
    out = np.asarray(out)
    return out.astype(np.float64) if is_float(dtype) else out.astype(dtype)


def check_step(program: Program, step: int, values: list[np.ndarray]) -> None:
    """The result of one instruction is NumPy's on the same operands: exactly for integers, within rounding for floats."""
    s = program.steps[step]
    got = values[len(program.inputs) + step]
    operands = [values[o] for o in s.operands if o >= 0]
    want = reference(s, operands, got.dtype)
    where = f"step {step} {s}"
    assert got.shape == want.shape, where
    if not is_float(got.dtype):
        np.testing.assert_array_equal(got, want, err_msg=where)
        return
    # A sum in order may lose half an ulp per element, seldom more than a fraction of that; everything else is within a few ulps. Halves are
    # computed in float32 and rounded once.
    half = name_of(got.dtype) if name_of(got.dtype) in EPS else ""
    eps = float(np.finfo(np.float32 if half else got.dtype).eps)
    rounding = 0.501 * EPS[half] * np.abs(want) + LEAST[half] / 2 if half else 0
    got = numbers_of(got)
    scale, terms = np.abs(want), 0
    if s.op in ("SUM", "MEAN", "MATMUL", "SCATTER_ADD", "SCATTER_ADD_ELEMENTS", "CUMSUM", "PROD", *WINDOWS) and s.op != "MAX_POOL2D":
        # The places a pool's gradient goes to are those of its operand as it is.
        signed = 1 if s.op == "MAX_POOL2D_GRAD" else 0
        magnitudes = [np.abs(numbers_of(o)) if is_float(o.dtype) and i >= signed else o for i, o in enumerate(operands)]
        scale, terms = reference(s, magnitudes, np.dtype(np.float64)), max(o.size for o in operands)
    with np.errstate(all="ignore"):
        near = np.abs(got - want) <= (40 + terms / 16) * eps * scale + rounding + 1e-37
        # One that rounds past the largest number is infinite; a float32 in between may be.
        large = 3e38 if not half else TOP[half] * (1 + 0.499 * EPS[half]) - (40 + terms / 16) * eps * scale
        beyond = (np.abs(want) > 3e38) | ((np.abs(want) >= large) & np.isinf(got))
        same = (got == want) | near | (np.isnan(got) & np.isnan(want)) | beyond
        if s.op == "PROD":  # in another order a product in between may be infinite, or denormal
            sizes, info = np.abs(numbers_of(operands[0])), np.finfo(np.float64 if eps < 1e-10 else np.float32)
            most, least = (reference(s, [bound(sizes, 1)], np.dtype(np.float64)) for bound in (np.fmax, np.fmin))
            same |= (most > info.max / 4) | (least < info.tiny * 4)
    assert same.all(), f"{where}: {got[~same][:4]} is not {want[~same][:4]}"


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()
