"""Recording: ids, inference, what errors say, hostile arguments."""
import numpy as np
import pytest
from core_kit import BOOL, CODE, F32, I32, OP, Recorder, arange, place

from dvm_core import _core


def test_ids_count_inputs_and_results_together():
    r = Recorder()
    x = r.input(arange(2, 3))
    y = r.neg(x, name="y", place=place(7))
    z = r.mul(y, -1, imms=(2,))
    g = r.graph
    assert (x, y, z, g.size(), g.pending()) == (0, 1, 2, 3, 2)
    assert (g.opcode(x), g.opcode(y), g.operands(z), g.imms(z)) == (0, OP["NEG"], (1, -1), (2,))
    assert (g.shape(z), g.dtype(z), g.place(y)) == ((2, 3), F32, place(7))
    assert g.in_memory(x) and not g.in_memory(y) and g.array(y) is None


def test_a_failed_op_records_nothing():
    r = Recorder()
    x = r.input(arange(2, 3))
    with pytest.raises(_core.Error):
        r.matmul(x, x, attrs=(0, 0))
    assert r.graph.size() == 1 and r.graph.pending() == 0
    y = r.neg(x)
    r.graph.flush((y,))
    assert np.array_equal(r.array(y), -arange(2, 3))


A, B, V = arange(32, 64), arange(32, 65), arange(4)
INDEX, MASK = np.zeros((3,), np.int32), np.zeros((4,), bool)

INFERENCE_ERRORS = [
    ("add", (A, B), {}, "ADD: float32[32,64] and float32[32,65] do not broadcast: axis -1 has 64 and 65"),
    ("add", (V, V.astype("f8")), {}, "ADD: operands differ in dtype: float32[4] and float64[4]; cast one of them"),
    ("add", (V,), {}, "ADD: takes 2 operands, got 1"),
    ("exp", (INDEX,), {}, "EXP: does not take int32[3]; it takes float32"),
    ("logical_and", (V, V), {}, "LOGICAL_AND: does not take float32[4]; it takes bool"),
    ("select", (V, V, V), {}, "SELECT: the condition must be bool, got float32[4]"),
    ("sum", (A,), {"attrs": (0, 2)}, "SUM: axis 2 is out of range for rank 2"),
    ("sum", (A,), {"attrs": (0,)}, "SUM: needs keepdims and at least one axis"),
    ("sum", (A,), {"attrs": (0, 1, 0)}, "SUM: axes must be ascending and adjacent"),
    ("mean", (INDEX,), {"attrs": (0, 0)}, "MEAN: does not take int32[3]; cast it to a float dtype first"),
    ("matmul", (A, A), {"attrs": (0, 0)}, "MATMUL: float32[32,64] @ float32[32,64]: inner extents 64 and 32 differ"),
    ("matmul", (A, V), {"attrs": (0, 0)}, "MATMUL: needs operands of rank 2 or more, got float32[32,64] and float32[4]"),
    ("matmul", (A, A), {}, "MATMUL: takes 2 attributes (transpose_a, transpose_b), got 0"),
    ("reshape", (A,), {"shape": (5, 5)}, "RESHAPE: float32[32,64] has 2048 elements, [5,5] has 25"),
    ("reshape", (A,), {}, "RESHAPE: needs the result's shape"),
    ("neg", (A,), {"shape": (32, 64)}, "NEG: the result's shape follows from the operands, none may be given"),
    ("transpose", (A,), {"attrs": (0, 0)}, "TRANSPOSE: axis 0 appears twice in the permutation"),
    ("slice", (V,), {"attrs": (2, 1), "shape": (3,)}, "SLICE: start 2, step 1, extent 3 leaves axis 0 of extent 4"),
    ("slice", (V,), {"attrs": (0, 2**62), "shape": (3,)}, "SLICE: start 0, step 4611686018427387904, extent 3 leaves axis 0 of extent 4"),
    ("slice", (V,), {"attrs": (0, -1), "shape": (2,)}, "SLICE: start 0, step -1, extent 2 leaves axis 0 of extent 4"),
    ("unslice", (V,), {"attrs": (0, 0), "shape": (8,)}, "UNSLICE: step 0 puts 4 elements of axis 0 in one place"),
    ("broadcast", (V,), {"shape": (4, 5)}, "BROADCAST: float32[4] does not broadcast to [4,5]"),
    ("concat", (A, V), {"attrs": (0,)}, "CONCAT: operand 1 float32[4] does not fit beside float32[32,64] along axis 0"),
    ("gather", (A, V), {"attrs": (0,)}, "GATHER: the index must be int32 or int64, got float32[4]"),
    ("scatter_add", (V, INDEX), {"attrs": (0,), "shape": (9,)},
     "SCATTER_ADD: adding at int32[3] along axis 0 of [9] takes [3], got float32[4]"),
    ("one_hot", (INDEX,), {"attrs": (5,), "dtype": F32}, "ONE_HOT: takes 2 immediates (on, off), got 0"),
    ("one_hot", (INDEX,), {"attrs": (-5,), "dtype": F32, "imms": (1, 0)}, "ONE_HOT: result [3,-5] has a negative extent"),
    ("full", (), {"shape": (3,), "dtype": F32}, "FULL: takes 1 immediates (the value), got 0"),
    ("full", (), {"shape": (3,), "imms": (1,)}, "FULL: needs a result dtype, got code 0"),
    ("full", (), {"shape": (2**40, 2**40), "dtype": F32, "imms": (1,)}, "FULL: shape [1099511627776,1099511627776] is too large"),
    ("full", (), {"shape": (-1,), "dtype": F32, "imms": (1,)}, "FULL: shape [-1] has a negative extent"),
    ("iota", (), {"shape": (3,), "dtype": I32, "attrs": (1,)}, "IOTA: axis 1 is out of range for rank 1"),
    ("cast", (V,), {}, "CAST: needs a result dtype, got code 0"),
]


@pytest.mark.parametrize("op, operands, rest, message", INFERENCE_ERRORS, ids=[f"{e[0]}-{i}" for i, e in enumerate(INFERENCE_ERRORS)])
def test_errors_name_op_types_and_line(op, operands, rest, message):
    r = Recorder()
    ids = [r.input(o) for o in operands]
    with pytest.raises(_core.Error) as caught:
        getattr(r, op)(*ids, place=place(42), **rest)
    assert message in str(caught.value)
    assert "(model.py:42)" in str(caught.value) and caught.value.place == place(42)
    assert r.graph.pending() == 0


def test_immediates_on_both_sides_are_refused():
    r = Recorder()
    with pytest.raises(_core.Error, match="ADD: both operands are immediates"):
        r.add(-1, -1, imms=(1,))
    with pytest.raises(_core.Error, match="NEG: takes tensors only"):
        r.neg(-1, imms=(1,))


@pytest.mark.parametrize("call, error", [
    (lambda g: g.op(0, ()), _core.Error),
    (lambda g: g.op(255, (0,)), _core.Error),
    (lambda g: g.op(4096, (0,)), _core.Error),
    (lambda g: g.op(OP["NEG"], (99,)), _core.Error),
    (lambda g: g.op(OP["NEG"], (-2,)), _core.Error),
    (lambda g: g.op(OP["NEG"], (2**40,)), _core.Error),
    (lambda g: g.op(OP["NEG"], (2**70,)), _core.Error),
    (lambda g: g.op(OP["NEG"], ("x",)), TypeError),
    (lambda g: g.op(OP["NEG"], 0), TypeError),
    (lambda g: g.op(OP["ADD"], (0, -1), imms=("x",)), (TypeError, ValueError)),
    (lambda g: g.op(OP["ADD"], (0, -1), imms=(2**70,)), _core.Error),
    (lambda g: g.op(OP["NEG"], (0,), place=-1), _core.Error),
    (lambda g: g.op(OP["NEG"], (0,), name=5), TypeError),
    (lambda g: g.op(OP["CAST"], (0,), dtype=77), _core.Error),
    (lambda g: g.op(OP["RESHAPE"], (0,), shape=(1,) * 11), _core.Error),
    (lambda g: g.op(OP["TRANSPOSE"], (0,), attrs=(2**63,)), _core.Error),
    (lambda g: g.input(0, (4,), F32), _core.Error),
    (lambda g: g.input(4098, (4,), F32), _core.Error),
    (lambda g: g.input(-1, (4,), F32), (OverflowError, TypeError)),
    (lambda g: g.input(4096, (-4,), F32), _core.Error),
    (lambda g: g.input(4096, (2**40, 2**40), F32), _core.Error),
    (lambda g: g.input(4096, (4,), F32, (2**62,)), _core.Error),
    (lambda g: g.input(4096, (4,), F32, (-2**63,)), _core.Error),
    (lambda g: g.input(4096, (4,), F32, (1, 1)), _core.Error),
    (lambda g: g.input(4096, (1,) * 11, F32), _core.Error),
    (lambda g: g.input(4096, (4,), 0), _core.Error),
    (lambda g: g.input(4096, (4,), -3), _core.Error),
    (lambda g: g.shape(5), _core.Error),
    (lambda g: g.array(-1), _core.Error),
    (lambda g: g.flush((5,)), _core.Error),
    (lambda g: g.flush((), ((0,),)), _core.Error),
    (lambda g: g.flush((), (5,)), TypeError),
    (lambda g: g.release((9,)), _core.Error),
    (lambda g: _core.program(10**9), _core.Error),
    (lambda g: _core.place_info(0), IndexError),
    (lambda g: _core.place_info(2**40), IndexError),
    (lambda g: _core.backward_place(2**31), IndexError),
    (lambda g: _core.empty((-1,), F32), _core.Error),
    (lambda g: _core.empty((2**60, 2**60), F32), _core.Error),
    (lambda g: _core.empty((1,) * 11, F32), _core.Error),
    (lambda g: _core.empty((1,), 0), _core.Error),
    (lambda g: _core.set_stop_handler(5), TypeError),
])
def test_hostile_arguments_raise_and_leave_the_graph_usable(call, error):
    r = Recorder()
    x = r.input(arange(4))
    with pytest.raises(error):
        call(r.graph)
    y = r.neg(x)
    r.graph.flush((y,))
    assert np.array_equal(r.array(y), -arange(4))


def test_values_not_kept_are_refused_later():
    r = Recorder()
    x = r.input(arange(4))
    h = r.exp(x, name="h")
    y = r.neg(h)
    r.graph.flush((y,))
    assert not r.graph.in_memory(h)
    with pytest.raises(_core.Error, match=r"value %1 \(h\) is no longer in memory"):
        r.neg(h)
    with pytest.raises(_core.Error, match="flush\\(keep\\): value %1"):
        r.graph.flush((h,))
    z = r.neg(y)  # a kept value goes on
    r.graph.flush((z,))
    assert np.allclose(r.array(z), np.exp(arange(4)))


def test_release_refuses_what_is_still_needed():
    r = Recorder()
    x = r.input(arange(4))
    y = r.neg(x)
    with pytest.raises(_core.Error, match="still to be computed"):
        r.graph.release((y,))
    with pytest.raises(_core.Error, match="operand of pending instructions"):
        r.graph.release((x,))
    r.graph.flush((y,))
    r.graph.release((x, y))
    assert not r.graph.in_memory(x) and not r.graph.in_memory(y)


def test_bfloat16_comes_as_uint16_and_arrays_are_read_only():
    r = Recorder()
    x = r.input(np.array([1.0, -2.0], np.float32))
    y = r.cast(x, dtype=CODE["bfloat16"])
    r.graph.flush((y,))
    assert r.array(y).dtype == np.uint16 and list(r.array(y)) == [0x3F80, 0xC000]
    with pytest.raises(ValueError):
        r.array(y)[0] = 0


def test_empty_values_and_scalars():
    r = Recorder()
    x = r.input(np.empty((0, 4), np.float32))
    s = r.input(np.array(3.0, np.float32))
    y, z, total = r.neg(x), r.mul(s, -1, imms=(2,)), r.sum(x, attrs=(0, 0))
    r.graph.flush((y, z, total))
    assert r.array(y).shape == (0, 4) and r.array(z) == 6 and list(r.array(total)) == [0] * 4
    again = r.neg(y)
    r.graph.flush((again,))
    assert r.array(again).shape == (0, 4)


def test_flush_of_nothing_is_none():
    r = Recorder()
    x = r.input(arange(3))
    assert r.graph.flush() is None and r.graph.flush((x,)) is None


def test_opcode_table_is_complete():
    assert len({code for _, code, *_ in _core.OPS}) == len(_core.OPS) > 50
    assert dict((n, s) for n, _, s in _core.DTYPES)["bfloat16"] == 2
    assert BOOL in {code for _, code, _ in _core.DTYPES}
