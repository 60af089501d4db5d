"""An array of one element as a Python number: bool, int, float, index, format and item say what NumPy's array would."""
from __future__ import annotations

import gc
import math
import operator

import numpy as np
import pytest

import dvm_core as dvm

DTYPES = ["float16", "float32", "float64", "bool", "int8", "uint8", "int32", "int64"]
VALUES = [0, 1, -3, 7, 127, 0.1, -0.0, 2.5, math.inf, -math.inf, math.nan, -(2**31), 2**63 - 1]


def arrays(dtype):
    """The values that the dtype holds, in NumPy's arrays of rank 0, 1 and 3."""
    for value in VALUES:
        if np.dtype(dtype).kind in "iu" and not (isinstance(value, int) and np.iinfo(dtype).min <= value <= np.iinfo(dtype).max):
            continue
        with np.errstate(over="ignore"):
            yield from (np.full(shape, value, dtype) for shape in ((), (1,), (1, 1, 1)))


def outcome(function, *args):
    try:
        found = function(*args)
    except Exception as error:
        return type(error), str(error)
    return type(found), repr(found)


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_element_is_the_number_it_is_in_numpy(dtype):
    for x in arrays(dtype):
        plain = x.reshape(())
        for a in (dvm.tensor(x), dvm.tensor(x) * 1 if dtype != "bool" else dvm.tensor(x) | False):  # in memory, and pending
            for read in (bool, int, float, lambda t: t.item()):
                assert outcome(read, a) == outcome(read, plain), (x, read)
        a = dvm.tensor(x) + 0 if dtype != "bool" else ~dvm.tensor(x)
        assert (1.0 if a else 0.0) == (1.0 if (~plain if dtype == "bool" else plain) else 0.0)


def test_bfloat16_is_read_as_the_number_it_holds():
    for value in (0.0, 1.0, -2.5, 3.140625, math.inf):
        a = dvm.tensor([value], "bfloat16")
        assert (a.item(), float(a), bool(a)) == (value, value, bool(value))
    assert math.isnan(dvm.tensor(math.nan, "bfloat16").item()) and bool(dvm.tensor(math.nan, "bfloat16"))


@pytest.mark.parametrize("shape", [(2,), (3, 2), (0,), (2, 0)])
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
@pytest.mark.filterwarnings("ignore:The truth value of an empty array")
def test_more_or_fewer_elements_are_refused_in_numpys_words(shape, dtype):
    x = np.zeros(shape, dtype)
    for a in (dvm.tensor(x), dvm.tensor(x) == 1 if dtype == "bool" else dvm.tensor(x) + 1):
        like = a.numpy()
        for read in (bool, int, float, operator.index, lambda t: t.item(), lambda t: f"{t:.2f}"):
            assert outcome(read, a) == outcome(read, like)


def test_an_integer_is_an_index_and_a_float_is_none():
    for dtype in ("int8", "uint8", "int32", "int64"):
        for a in (dvm.tensor(np.array(2, dtype)), dvm.tensor(np.array([1], dtype)) + 1):
            assert "abc"[a] == "c" and list(range(a)) == [0, 1] and type(operator.index(a)) is int
    assert type(operator.index(dvm.tensor(True))) is int
    for a in (dvm.tensor(1.0), dvm.tensor([2.0]) * 2):
        with pytest.raises(TypeError, match="only integer scalar arrays can be converted to a scalar index"):
            operator.index(a)


def test_format_is_numpys():
    for x in (np.float32(0.1), np.float64(2.5), np.int32(-7), np.bool_(True)):
        for spec in ("", "8.3f", ">10"):
            assert outcome(format, dvm.tensor(np.asarray(x)), spec) == outcome(format, np.asarray(x), spec)
    x = np.arange(4, dtype=np.float32)
    assert f"{dvm.tensor(x) + 1}" == f"{x + 1}" and f"{dvm.tensor(2.0) * 2:.1f}" == "4.0"


def test_a_view_with_any_stride_is_read_where_it_lies():
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    assert dvm.tensor(x[::-1, ::-2])[1:2, 2:3].item() == x[::-1, ::-2][1, 2]
    assert float(dvm.tensor(x[3:2:-1, 4:3:-1])) == x[3, 4] and int(dvm.tensor(x).transpose()[5, 3]) == 23


def test_numbers_beyond_a_double_are_exact():
    for value in (2**63 - 1, -(2**63), 2**53 + 1):
        assert int(dvm.tensor(np.array(value))) == value == dvm.tensor(np.array([value])).item()


@pytest.mark.parametrize("read", [bool, int, float, lambda t: t.item(), operator.index, str, lambda t: f"{t:d}"])
def test_a_failure_of_what_is_pending_is_told_by_every_read(read):
    x = dvm.tensor(np.arange(4))
    wrong = x[dvm.tensor(np.array([9]))]
    for _ in range(2):
        with pytest.raises(dvm.Error, match="out of range"):
            read(wrong)


def test_what_was_given_away_has_no_truth():
    x = dvm.tensor(np.array([1.0], np.float32))
    dvm.jit(lambda t: t + 1, mode="graph", donate=(0,))(x)
    for read in (bool, float, int, lambda t: t.item()):
        with pytest.raises(dvm.Error, match="given away"):
            read(x)


@pytest.mark.parametrize("mode", ["stream", "graph"])
@pytest.mark.parametrize("read", [bool, int, float, lambda t: t.item(), lambda t: [False, True][t.astype("int64")]])
def test_a_captured_function_takes_the_branch_of_each_call(mode, read):
    @dvm.jit(mode=mode)
    def function(x):
        return x * 2 if read((x > 0).any()) else x - 1

    for value in (1.0, -1.0, 1.0, 1.0, -2.0, -2.0):
        x = np.full(5, value, np.float32)
        np.testing.assert_array_equal(function(dvm.tensor(x)).numpy(), x * 2 if value > 0 else x - 1)


def test_reading_leaves_nothing_behind():
    x = dvm.tensor(np.ones((4, 4), np.float32))
    for _ in range(3):
        assert x.sum() > 0
    gc.collect()
    before = dvm.stats()["bytes_live"]
    for _ in range(200):
        assert bool(x.sum() > 0) and float(x.sum()) == 16
    gc.collect()
    assert dvm.stats()["bytes_live"] <= before


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "prod", "any", "all"])
def test_reductions_take_axes_as_numpy_does(name):
    random = np.random.default_rng(5)
    for dtype in ("float32", "float64", "int32", "uint8", "bool"):
        for shape in ((), (3,), (2, 3), (2, 1, 4)):
            x = (random.random(shape) * 3).astype(dtype)
            for axis in (None, *range(-len(shape), len(shape)), tuple(range(len(shape)))):
                for keepdims in (False, True):
                    found = getattr(dvm.tensor(x), name)(axis, keepdims).numpy()
                    expected = getattr(x, name)(axis=axis, keepdims=keepdims)
                    assert found.shape == np.shape(expected)
                    np.testing.assert_allclose(found, expected, rtol=1e-6)
    for axis in (2, -3, 2**70):
        with pytest.raises(dvm.Error, match=f"axis {axis} is out of range"):
            getattr(dvm.tensor(np.ones((2, 3), np.float32)), name)(axis)
