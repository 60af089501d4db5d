"""Sorting, scanning, padding and indexed instructions: every dtype and layout, edges, and what is refused."""
from __future__ import annotations

import numpy as np
import pytest
from core_programs import BFLOAT16, CODE, OP, Program, check_step, input_of, is_float, name_of, run, same_bits
from random_programs import Maker

from dvm_core import _core

DTYPES = (*map(np.dtype, ("bool", "int8", "uint8", "int32", "int64", "float16", "float32", "float64")), BFLOAT16)
ORDERED = ("SORT", "ARGSORT", "TOPK", "ARGMAX", "ARGMIN", "SCATTER_ELEMENTS", "SCATTER_ADD_ELEMENTS")
I32, I64 = CODE["int32"], CODE["int64"]
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.fixture(autouse=True)
def threads():
    yield
    _core.set_threads(0)


def values(maker: Maker, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Under any strides; floats with NaN, infinities and both zeros among them."""
    x = maker.strided(shape, dtype)
    if is_float(dtype) and x.flags.writeable:
        special = [0x7FC0, 0x7F80, 0xFF80, 0, 0x8000] if dtype == BFLOAT16 else [np.nan, np.inf, -np.inf, 0.0, -0.0]
        special = np.array(special, x.dtype)
        where = maker.np.random(shape) < 0.15
        x[where] = special[maker.np.integers(0, 5, int(where.sum()))]
    return x


WAYS = [(way, dtype) for way in (*ORDERED, "CUMSUM", "PAD", "SCATTER") for dtype in DTYPES
        if dtype != np.bool_ or way not in ("CUMSUM", "SCATTER_ADD_ELEMENTS")]


@pytest.mark.parametrize(("way", "dtype"), WAYS, ids=lambda part: part if isinstance(part, str) else name_of(part))
def test_every_dtype_layout_and_size_is_numpys(way: str, dtype: np.dtype) -> None:
    for seed, base in enumerate([(5,), (0, 3), (3, 0, 2), (7, 9), (2, 3, 4), (1, 3000), (4000, 3), (90, 40, 11), (3, 2, 2, 2, 3)]):
        maker = Maker(seed)
        x = values(maker, base, dtype)
        maker.program.input(x)
        maker.types.append((x.shape, x.dtype))
        while not any(step.op == way for step in maker.program.steps) and len(maker.program.steps) < 40:
            if way in ORDERED:
                maker.ordered(way, 0)
            elif way == "SCATTER":
                maker.indexed(way, 0)
            else:
                maker.move_as(way, 0)
            if 0 in base:
                break
        program = maker.program
        count = 1 + len(program.steps)
        bits = []
        for number in (1, 2):
            _core.set_threads(number)
            recorded, _ = run(program, range(1, count))
            bits.append([recorded.array(v) for v in range(count)])
        for step in range(len(program.steps)):
            check_step(program, step, bits[0])
        assert all(same_bits(a, b) for a, b in zip(*bits, strict=True))


def one(op: str, *arrays: np.ndarray, attrs=(), shape=None, dtype: int = 0, imms=()) -> np.ndarray:
    program = Program()
    operands = [program.input(a) for a in arrays]
    out = program.op(op, *operands, attrs=attrs, shape=shape, dtype=dtype, imms=imms)
    return run(program, [out])[0].array(out)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_sort_is_stable_and_puts_nan_above_infinity(dtype: str) -> None:
    x = np.array([0.0, np.nan, -0.0, 3, np.inf, -np.inf, 0.0, -3, np.nan, -0.0], dtype)
    for n in (1, 500):  # compared, counted
        long = np.tile(x, n)
        up, down = one("ARGSORT", long, attrs=(0, 0), dtype=I64), one("ARGSORT", long, attrs=(0, 1), dtype=I32)
        assert up.tolist() == np.argsort(long, kind="stable").tolist()
        assert same_bits(one("SORT", long, attrs=(0, 0)), long[up])
        assert same_bits(one("SORT", long, attrs=(0, 1)), long[down])
        assert np.isnan(long[down[: 2 * n]]).all() and long[down[2 * n]] == np.inf
        ties = down[(2 + 1 + 1) * n :][: 4 * n]  # the zeros, in the order they stood
        assert (np.diff(ties) > 0).all() and (long[ties] == 0).all()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_integers_sort_by_value_to_the_ends_of_their_range(dtype: str) -> None:
    info = np.iinfo(dtype)
    x = np.random.default_rng(0).integers(info.min, info.max, 5000, dtype, endpoint=True)
    x[::9], x[1::9] = info.min, info.max
    assert same_bits(one("SORT", x, attrs=(0, 0)), np.sort(x))
    assert one("ARGSORT", x, attrs=(0, 0), dtype=I64).tolist() == np.argsort(x, kind="stable").tolist()


def test_topk_is_the_beginning_of_argsort() -> None:
    x = np.random.default_rng(1).integers(0, 50, (3, 4000)).astype(np.float32)
    for down in (0, 1):
        whole = one("ARGSORT", x, attrs=(1, down), dtype=I64)
        for k in (0, 1, 7, 3999, 4000):
            assert same_bits(one("TOPK", x, attrs=(1, k, down), dtype=I64), whole[:, :k])


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_the_first_nan_wins_then_the_first_of_ties(axis: int) -> None:
    x = np.random.default_rng(2).integers(0, 4, (5, 300, 6)).astype(np.float32)
    x[1, 2, 3] = x[1, 200, 3] = x[4, 0, 0] = np.nan
    for op, fn in (("ARGMAX", np.argmax), ("ARGMIN", np.argmin)):
        for dtype in (I32, I64):
            assert np.array_equal(one(op, x, attrs=(0, axis), dtype=dtype), fn(x, axis))


def test_cumsum_adds_one_after_the_other() -> None:
    x = np.random.default_rng(3).standard_normal((3, 70000)).astype(np.float32)
    assert same_bits(one("CUMSUM", x, attrs=(1, 0, 0)), np.cumsum(x, 1, dtype=np.float32))
    assert same_bits(one("CUMSUM", x.T, attrs=(0, 0, 0)), np.cumsum(x, 1, dtype=np.float32).T.copy())
    small = np.full(300, 100, np.int8)
    assert same_bits(one("CUMSUM", small, attrs=(0, 0, 0)), np.cumsum(small, dtype=np.int8))  # wraps
    half = np.full(3000, 1.0, np.float16)
    assert one("CUMSUM", half, attrs=(0, 0, 0))[-1] == 3000  # summed in float32: halves stop at 2048


def test_the_last_of_several_writes_stays_however_large_the_index() -> None:
    rng = np.random.default_rng(4)
    index = rng.integers(-50, 50, 200_000)
    new = rng.standard_normal((200_000, 3)).astype(np.float32)
    want = np.zeros((50, 3), np.float32)
    for at, row in zip(index, new, strict=True):
        want[at] = row
    assert same_bits(one("SCATTER", np.zeros((50, 3), np.float32), index, new, attrs=(0,)), want)
    wide = np.repeat(index[:, None], 3, 1)
    assert same_bits(one("SCATTER_ELEMENTS", np.zeros((50, 3), np.float32), wide, new, attrs=(0,)), want)


def test_a_padded_window_that_moves_makes_no_new_program() -> None:
    x = np.ones((2, 3), np.float32)
    before = _core.stats()["programs"]
    for start in range(4):
        want = np.full((2, 8), -1.0, np.float32)
        want[:, start : start + 3] = 1
        assert same_bits(one("PAD", x, attrs=(0, start), shape=(2, 8), imms=(-1.0,)), want)
    assert _core.stats()["programs"] - before <= 1


X = np.zeros((4, 6), np.float32)
ROW = np.zeros(5, np.int64)
REFUSED = {
    "pad leaves": ("PAD", [X], {"attrs": (1, 0), "shape": (4, 6), "imms": (0.0,)},
                   r"1 elements before axis 0 of float32\[4,6\] leave \[4,6\]"),
    "cumsum of bool": ("CUMSUM", [X > 0], {"attrs": (0, 0, 0)}, "CUMSUM: does not take bool"),
    "cumsum axis": ("CUMSUM", [X], {"attrs": (2, 0, 0)}, "axis 2 is out of range for rank 2"),
    "exclusive": ("CUMSUM", [X], {"attrs": (0, 5, 0)}, "exclusive must be 0 or 1, got 5"),
    "index rank": ("GATHER_ELEMENTS", [X, ROW], {"attrs": (0,)}, r"index int64\[5\] along axis 0 does not fit \[4,6\]"),
    "index too wide": ("GATHER_ELEMENTS", [X, np.zeros((2, 7), int)], {"attrs": (0,)}, "does not fit"),
    "index dtype": ("GATHER_ELEMENTS", [X, X], {"attrs": (0,)}, "must be int32 or int64"),
    "written dtype": ("SCATTER", [X, ROW, np.zeros((5, 6))], {"attrs": (0,)}, "differ in dtype"),
    "written shape": ("SCATTER", [X, ROW, X], {"attrs": (0,)}, r"takes \[5,6\], got float32\[4,6\]"),
    "elements of another shape": ("SCATTER_ELEMENTS", [X, np.zeros((4, 5), int), X], {"attrs": (1,)}, "must have one shape"),
    "argmax of nothing": ("ARGMAX", [X[:0]], {"attrs": (0, 0), "dtype": I64}, "is empty"),
    "argmax dtype": ("ARGMAX", [X], {"attrs": (0, 0), "dtype": CODE["float32"]}, "makes int32 or int64, not float32"),
    **{f"{op.lower()} of more than int32 counts": (op, [np.broadcast_to(np.uint8(0), (1 << 31) + 1)], {"attrs": attrs, "dtype": I32},
                                                   "makes int64 of an axis of extent 2147483649: int32 does not hold every position")
       for op, attrs in {"ARGMAX": (0, 0), "ARGMIN": (0, 0), "ARGSORT": (0, 0), "TOPK": (0, 1, 1)}.items()},
    "topk of too many": ("TOPK", [X], {"attrs": (1, 7, 1), "dtype": I64}, r"7 of the 6 elements along axis 1 of float32\[4,6\]"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused_with_its_place(case: str) -> None:
    op, arrays, rest, words = REFUSED[case]
    graph = _core.Graph("refused")
    place = _core.place("model.py", 12)
    operands = tuple(input_of(graph, a) for a in arrays)
    with pytest.raises(_core.Error, match=words) as error:
        graph.op(OP[op], operands, rest.get("attrs", ()), rest.get("shape"), rest.get("dtype", 0), rest.get("imms", ()), place)
    assert error.value.place == place


@pytest.mark.parametrize("op", ["GATHER_ELEMENTS", "SCATTER_ADD_ELEMENTS", "SCATTER_ELEMENTS", "SCATTER"])
@pytest.mark.parametrize("bad", [4, -5, 1 << 40, (1 << 63) - 1, -(1 << 63)])
def test_an_element_index_out_of_range_is_an_error(op: str, bad: int) -> None:
    index = np.array([[0, 1], [bad, -4]], np.int64)
    x, new = np.zeros((4, 2), np.float32), np.zeros((2, 2), np.float32)
    arrays = {"GATHER_ELEMENTS": [x, index], "SCATTER_ADD_ELEMENTS": [new, index], "SCATTER_ELEMENTS": [x, index, new],
              "SCATTER": [x, index, np.zeros((2, 2, 2), np.float32)]}[op]
    with pytest.raises(_core.Error, match=rf"{op}: index {bad} \(element 2 .*axis 0 of extent 4"):
        one(op, *arrays, attrs=(0,), shape=(4, 2) if op == "SCATTER_ADD_ELEMENTS" else None)


def test_halves_are_summed_in_float32_and_rounded_once() -> None:
    new = np.full((1000, 1), 0.1, np.float16)
    got = one("SCATTER_ADD_ELEMENTS", new, np.zeros((1000, 1), np.int32), attrs=(0,), shape=(2, 1))
    total = np.cumsum(new[:, 0].astype(np.float32), dtype=np.float32)[-1]
    assert same_bits(got, np.array([[total], [0]], np.float16))
