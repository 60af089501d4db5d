"""Dtypes, ranks and shapes at the edges: halves, rank 0 and 10, empty tensors, index errors, immediates of every launch."""
from __future__ import annotations

import numpy as np
import pytest
from core_programs import CODE, DTYPE, OP, Program, code, input_of, record, run, same_bits

from dvm_core import _core

F16, BF16, F32, F64, I32, I64 = (CODE[n] for n in ("float16", "bfloat16", "float32", "float64", "int32", "int64"))


def array(*shape, dtype=np.float32, seed=3):
    return np.asarray(np.random.default_rng(seed).standard_normal(shape)).astype(dtype)


def result(program, value):
    return run(program, [value])[0].array(value)


def bfloat16(x):
    """float32 rounded to bfloat16, as float32."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)


# ---- halves ---------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(5, 7, 9), (40, 64, 33)])
def test_float16_products_are_summed_in_float32(shape):
    m, k, n = shape
    a, b = array(m, k, dtype=np.float16), array(k, n, dtype=np.float16, seed=4)
    p = Program()
    out = p.op("MATMUL", p.input(a), p.input(b), attrs=(0, 0))
    want = a.astype(np.float64) @ b.astype(np.float64)
    got = result(p, out)
    assert got.dtype == np.float16
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=2e-3, atol=1e-2)


def test_float16_products_of_transposed_and_broadcast_batches():
    a, b = array(3, 2, 8, 5, dtype=np.float16), array(2, 6, 8, dtype=np.float16, seed=4)
    p = Program()
    out = p.op("MATMUL", p.input(a), p.input(b), attrs=(1, 1))
    want = np.swapaxes(a.astype(np.float64), -1, -2) @ np.swapaxes(b.astype(np.float64), -1, -2)
    np.testing.assert_allclose(result(p, out).astype(np.float64), want, rtol=2e-3, atol=1e-2)


def test_bfloat16_rounds_to_nearest_even():
    x = array(1000)
    p = Program()
    h = p.op("CAST", p.input(x), dtype=BF16)
    out = p.op("CAST", h, dtype=F32)
    assert same_bits(result(p, out), bfloat16(x))


@pytest.mark.parametrize("source", [np.float64, np.int32, np.int64])
def test_casts_to_a_half_and_back(source):
    x = (array(100) * 100).astype(source)
    p = Program()
    h = p.op("CAST", p.input(x), dtype=F16)
    back = p.op("CAST", h, dtype=code(source))
    recorded, _ = run(p, [h, back])
    assert same_bits(recorded.array(h), x.astype(np.float16))
    assert same_bits(recorded.array(back), x.astype(np.float16).astype(source))


@pytest.mark.parametrize("dtype", [F16, BF16])
@pytest.mark.parametrize("shape, axes", [((3, 70), (1,)), ((700, 33), (0,)), ((2, 40000), (1,)), ((5, 300, 6), (1,)),
                                         ((9, 20, 4), (0, 1, 2))])
@pytest.mark.parametrize("op", ["SUM", "MEAN", "MAX", "MIN"])
def test_reductions_of_halves_are_those_of_float32_rounded_once(op, shape, axes, dtype):
    """In a tile, joined over tiles, over rows and over columns: the bits are those of the float32 reduction, cast."""
    p = Program()
    h = p.op("CAST", p.input(array(*shape)), dtype=dtype)
    narrow = p.op(op, h, attrs=(0, *axes))
    wide = p.op("CAST", p.op(op, p.op("CAST", h, dtype=F32), attrs=(0, *axes)), dtype=dtype)
    recorded, _ = run(p, [narrow, wide])
    assert same_bits(recorded.array(narrow), recorded.array(wide))


@pytest.mark.parametrize("dtype", [F16, BF16])
def test_a_scattered_sum_of_halves_does_not_stagnate(dtype):
    """Ten thousand ones into one place: in bfloat16 steps the sum would stop at 256."""
    p = Program()
    index = p.input(np.arange(10000, dtype=np.int64) % 4)
    ones = p.op("FULL", shape=(10000, 3), dtype=dtype, imms=(1,))
    total = p.op("SCATTER_ADD", ones, index, attrs=(0,), shape=(4, 3))
    out = p.op("CAST", total, dtype=F32)
    np.testing.assert_array_equal(result(p, out), np.full((4, 3), 2500 if dtype == F16 else 2496, np.float32))


def test_an_immediate_is_rounded_to_a_half_once():
    tie = 1 + 2.0 ** -11 + 2.0 ** -40  # as float32 a tie, which would go to 1
    p = Program()
    out = p.op("ADD", p.input(np.zeros(3, np.float16)), -1, imms=(tie,))
    assert (result(p, out) == np.float16(1 + 2.0 ** -10)).all()


# ---- integers and bool ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "bool"])
def test_products_of_integers_and_bools_are_numpys(dtype):
    """Integers wrap around, bools are or-ed; batches broadcast, either side transposed."""
    rng = np.random.default_rng(2)
    for ta in (0, 1):
        for tb in (0, 1):
            a, b = rng.integers(-100, 100, (2, 1, 9, 13)).astype(dtype), rng.integers(-100, 100, (3, 13, 5)).astype(dtype)
            if dtype == "bool":
                a, b = rng.random(a.shape) < 0.2, rng.random(b.shape) < 0.2
            p = Program()
            x, y = (np.ascontiguousarray(np.swapaxes(v, -1, -2)) if t else v for v, t in ((a, ta), (b, tb)))
            out = p.op("MATMUL", p.input(x), p.input(y), attrs=(ta, tb))
            assert same_bits(result(p, out), np.matmul(a, b))


def test_whole_numbers_and_bools_have_roundings_and_magnitudes():
    p = Program()
    flag, small = p.input(np.array([True, False])), p.input(np.array([-128, 7], np.int8))
    outs = [p.op(op, v) for v in (flag, small) for op in ("ABS", "FLOOR", "CEIL", "ROUND", "TRUNC")]
    recorded, _ = run(p, outs)
    assert [recorded.array(v).tolist() for v in outs] == [[True, False]] * 5 + [[-128, 7]] * 5


def test_float16_moves_and_choices():
    x = array(6, 4, dtype=np.float16)
    index = np.array([5, -6, 0, 5], np.int32)
    p = Program()
    v, i = p.input(x), p.input(index)
    taken = p.op("GATHER", v, i, attrs=(0,))
    back = p.op("SCATTER_ADD", taken, i, attrs=(0,), shape=(6, 4))
    both = p.op("CONCAT", v, back, attrs=(1,))
    recorded, _ = run(p, [taken, back, both])
    assert same_bits(recorded.array(taken), x[index])
    want = np.zeros_like(x)
    want[0], want[5] = x[0] + x[0], x[5] + x[5]
    assert same_bits(recorded.array(back), want)
    assert same_bits(recorded.array(both), np.concatenate([x, want], 1))


# ---- ranks and empty tensors ----------------------------------------------------------------------------------------------------------


def test_rank_ten_with_every_second_axis_broadcast():
    a, b = array(2, 1, 3, 1, 2, 1, 2, 1, 3, 1), array(1, 2, 1, 2, 1, 3, 1, 2, 1, 2, seed=4)
    p = Program()
    s = p.op("MUL", p.input(a), p.input(b))
    total = p.op("SUM", s, attrs=(1, 7, 8, 9))
    recorded, _ = run(p, [s, total])
    assert same_bits(recorded.array(s), a * b)
    np.testing.assert_allclose(recorded.array(total), (a * b).sum((7, 8, 9), keepdims=True, dtype=np.float64), rtol=1e-5, atol=1e-6)


def test_rank_zero_all_the_way():
    p = Program()
    x = p.input(np.asarray(np.float32(0.5)))
    y = p.op("ADD", p.op("EXP", x), -1, imms=(1.0,))
    z = p.op("RESHAPE", y, shape=(1, 1))
    out = p.op("SUM", z, attrs=(0, 0, 1))
    assert result(p, out) == np.float32(np.exp(np.float32(0.5))) + np.float32(1)


@pytest.mark.parametrize("op, want", [("SUM", 0.0), ("MEAN", np.nan)])
def test_reductions_of_nothing(op, want):
    p = Program()
    x = p.input(np.zeros((3, 0, 2), np.float32))
    rows = p.op(op, x, attrs=(0, 1, 2))
    columns = p.op(op, x, attrs=(0, 1))
    after = p.op("ADD", columns, -1, imms=(1.0,))
    recorded, _ = run(p, [rows, columns, after])
    for v, shape in ((rows, (3,)), (columns, (3, 2))):
        np.testing.assert_array_equal(recorded.array(v), np.full(shape, want, np.float32))
    np.testing.assert_array_equal(recorded.array(after), np.full((3, 2), want + 1, np.float32))


def test_product_over_nothing_is_zero():
    p = Program()
    a, b = p.input(np.zeros((3, 0), np.float32)), p.input(np.zeros((0, 4), np.float32))
    out = p.op("ADD", p.op("MATMUL", a, b, attrs=(0, 0)), -1, imms=(2.0,))
    np.testing.assert_array_equal(result(p, out), np.full((3, 4), 2, np.float32))


def test_empty_results_cost_nothing_and_keep_their_shape():
    p = Program()
    x = p.input(np.zeros((0, 5), np.float32))
    y = p.op("EXP", x)
    m = p.op("MATMUL", y, y, attrs=(0, 1))
    recorded, launches = run(p, [y, m])
    assert recorded.array(y).shape == (0, 5) and recorded.array(m).shape == (0, 0)
    assert launches[0].program.areas == []


# ---- indexes --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", ["GATHER", "SCATTER_ADD"])
@pytest.mark.parametrize("bad", [4, -5, 1 << 40])
def test_an_index_out_of_range_is_an_error_with_its_place(op, bad):
    g = _core.Graph("take")
    place = _core.place("model.py", 12)
    x, i = array(4, 3), np.array([[0, 1], [bad, -4]], np.int64)
    v, index = input_of(g, x), input_of(g, i)
    if op == "SCATTER_ADD":
        x = array(2, 2, 3)
        v = input_of(g, x)
    out = g.op(OP[op], (v, index), (0,), (4, 3) if op == "SCATTER_ADD" else None, 0, (), place)
    words = rf"index {bad} \(element 2 of the index \[2,2\]\) is out of range for axis 0 of extent 4"
    with pytest.raises(_core.Error, match=words) as error:
        g.flush([out])
    assert error.value.place == place


def test_one_hot_outside_its_depth_is_off():
    p = Program()
    out = p.op("ONE_HOT", p.input(np.array([0, 3, -1, 9], np.int32)), attrs=(4,), dtype=F32, imms=(2.0, 0.5))
    want = np.full((4, 4), 0.5, np.float32)
    want[0, 0] = want[1, 3] = 2
    assert same_bits(result(p, out), want)


# ---- immediates -----------------------------------------------------------------------------------------------------------------------


def test_immediates_are_read_at_every_launch_without_a_compile():
    x = array(10)
    before = _core.stats()["selector_misses"]
    for k in range(5):
        p = Program()
        out = p.op("MUL", p.op("ADD", p.input(x), -1, imms=(float(k),)), p.op("FULL", shape=(10,), dtype=F32, imms=(k + 0.5,)))
        assert same_bits(result(p, out), (x + np.float32(k)) * np.float32(k + 0.5))
    assert _core.stats()["selector_misses"] - before <= 1


def test_large_int64_immediates_survive():
    x = np.array([1, 2, 3], np.int64)
    p = Program()
    out = p.op("ADD", p.input(x), -1, imms=((1 << 62) + 1,))
    assert result(p, out).tolist() == [(1 << 62) + 2, (1 << 62) + 3, (1 << 62) + 4]


@pytest.mark.parametrize("dtype", [c for c in DTYPE if DTYPE[c] != np.bool_])
def test_full_and_iota_of_every_dtype(dtype):
    p = Program()
    full = p.op("FULL", shape=(3, 2), dtype=dtype, imms=(3,))
    iota = p.op("IOTA", shape=(3, 2), dtype=dtype, attrs=(0,))
    recorded, _ = run(p, [full, iota])
    assert same_bits(recorded.array(full), np.full((3, 2), 3, DTYPE[dtype]))
    assert same_bits(recorded.array(iota), np.repeat(np.arange(3), 2).reshape(3, 2).astype(DTYPE[dtype]))


# ---- memory ---------------------------------------------------------------------------------------------------------------------------


def test_a_dying_operand_gives_its_place_to_the_result():
    x = array(64, 64)
    p = Program()
    v = p.input(x)
    c = p.op("MATMUL", v, v, attrs=(0, 0))
    d = p.op("MATMUL", c, v, attrs=(0, 0))
    e = p.op("SUB", c, p.op("TRANSPOSE", d, attrs=(1, 0)))  # d in another order: an area of its own, where c dies
    out = p.op("MATMUL", e, v, attrs=(0, 0))
    _core.memory_log(True)
    try:
        first = (_core.memory_events() or [{"id": -1}])[-1]["id"] + 1
        recorded, _ = run(p, [out])
        events = [m for m in _core.memory_events(first) if m["cls"] == "workspace"]
    finally:
        _core.memory_log(False)
    taken = {m["instruction"]: m for m in events}
    step = e - len(p.inputs)
    assert taken[step]["in_place_of"] == taken[c - len(p.inputs)]["id"]
    assert taken[step]["address"] == taken[c - len(p.inputs)]["address"]
    x64 = x.astype(np.float64)
    c64 = x64 @ x64
    np.testing.assert_allclose(recorded.array(out), (c64 - (c64 @ x64).T) @ x64, rtol=1e-3, atol=0.1)


def test_results_written_over_an_input_are_complete():
    p = Program()
    x = array(300, 40)
    v = p.input(x)
    centred = p.op("SUB", v, p.op("MEAN", v, attrs=(1, 0)))
    want = result(p, centred)
    graph = _core.Graph("in place")
    ids = [input_of(graph, x)]
    record(p, graph, ids, p.steps)
    graph.flush([], [(ids[centred], x.ctypes.data)])
    assert same_bits(x, want)
