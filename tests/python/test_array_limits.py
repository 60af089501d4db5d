"""What does not fit an array is refused with the op, the value and the line: numbers, ranks, bytes. Integers at their edges."""
from __future__ import annotations

import operator
import warnings

import numpy as np
import pytest

import dvm_core as dvm
from dvm_core import msbc

INTEGERS = (np.int8, np.uint8, np.int32, np.int64)
COMPARISONS = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)


def array(dtype, *values):
    return dvm.tensor(np.array(values or (0, 1, 100), dtype))


@pytest.mark.parametrize("use", [
    lambda a, n: a + n, lambda a, n: n - a, lambda a, n: a * n, lambda a, n: a // n, lambda a, n: a % n, lambda a, n: a & n,
    lambda a, n: a.maximum(n), lambda a, n: a.clamp(None, n), lambda a, n: (a > 0).where(a, n), lambda a, n: a.pad(1, n),
    lambda a, n: dvm.tensor([1, n], a.dtype), lambda a, n: dvm.tensor(n, a.dtype)])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_a_number_an_integer_array_does_not_hold_is_refused_where_it_stands(dtype, use) -> None:
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    for number in (most + 1, least - 1, 2**70):
        with pytest.raises((dvm.ArgumentError, dvm.DtypeError), match=rf"test_array_limits.py:\d+: .*{np.dtype(dtype).name}"):
            use(array(dtype), number)
    for number in (least, most):
        use(array(dtype), number).numpy()


def test_the_message_names_op_number_dtype_range_and_remedy() -> None:
    with pytest.raises(dvm.ArgumentError, match=r"ADD: the number 300 does not fit an array of int8 \(-128 to 127\); .*astype\('int32'\)"):
        array(np.int8) + 300
    with pytest.raises(dvm.ArgumentError, match=r"MUL: the number 2 does not fit an array of bool \(0 to 1\)"):
        dvm.tensor([True]) * 2
    with pytest.raises(dvm.ArgumentError, match=r"ADD: the number 1.5 does not fit an array of int32"):
        array(np.int32) + 1.5
    with pytest.raises(dvm.ArgumentError, match=r"POW: i32\[3\] to the power -1: integers have no negative powers"):
        array(np.int32) ** -1
    for wrong in (float("nan"), float("inf")):
        with pytest.raises(dvm.ArgumentError, match="does not fit"):
            dvm.tensor([1.0, wrong], "int32")


@pytest.mark.parametrize("dtype", INTEGERS)
def test_comparisons_with_numbers_beyond_the_range_are_those_of_the_numbers(dtype) -> None:
    values = np.array([0, 1, np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)
    for compare in COMPARISONS:
        for number in (2**80, -(2**80), int(np.iinfo(dtype).max) + 1, int(np.iinfo(dtype).min) - 1, 1):
            assert compare(dvm.tensor(values), number).tolist() == [compare(int(v), number) for v in values]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_at_their_edges_agree_with_numpy(dtype) -> None:
    # Quotients and remainders by 0, MIN / -1, shifts by more bits than there are: as NumPy has them and docs/bytecode.md says.
    info = np.iinfo(dtype)
    values = np.array([0, 1, 2, 3, 7, info.min, info.max, info.max - 1] + [-1, -2, -7] * (info.min < 0), dtype)
    left, right = (side.ravel() for side in np.meshgrid(values, values))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for use in (operator.floordiv, operator.mod, operator.lshift, operator.rshift):
            np.testing.assert_array_equal(use(dvm.tensor(left), dvm.tensor(right)).numpy(), use(left, right))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_casts_to_integers_stop_at_the_ends_and_nan_is_zero(dtype) -> None:
    info = np.iinfo(dtype)
    values = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 1.9, -0.9], np.float64)
    assert dvm.tensor(values).astype(np.dtype(dtype).name).tolist() == [0, info.max, info.min, info.max, info.min, 1, 0]


@pytest.mark.parametrize("method", ["max", "min", "argmax", "argmin"])
def test_extremes_of_nothing_are_refused(method: str) -> None:
    empty = dvm.tensor(np.zeros((0, 3), np.float32))
    with pytest.raises(dvm.ShapeError, match=rf"test_array_limits.py:\d+: {method.upper()}: axis 0 of float32\[0,3\] is empty"):
        getattr(empty, method)(0)
    assert getattr(empty, method)(1).shape == (0,)


def test_ranks_beyond_the_limit_are_refused_with_the_limit() -> None:
    with pytest.raises(dvm.Error, match=r"test_array_limits.py:\d+: tensor: an array of rank 11; a tensor has at most 10 axes"):
        dvm.tensor(np.zeros((1,) * 11))


@pytest.mark.parametrize("captured", [False, True])
def test_what_there_is_no_memory_for_is_named(captured: bool) -> None:
    def grown(x):
        return x.broadcast_to((2**42,)) + 1

    text = r"test_array_limits.py:\d+: ADD: its result float32\[4398046511104\]: no memory for 17592186044416 bytes"
    x = dvm.tensor(np.ones(1, np.float32))
    for kind in (dvm.OutOfMemoryError, MemoryError):
        with pytest.raises(kind, match=text):
            (dvm.jit(grown) if captured else grown)(x).numpy()
    pending = grown(x)
    for _ in range(2):
        with pytest.raises(dvm.Error, match="no memory"):
            pending.numpy()
    assert (x + 1).tolist() == [2]


def test_dimensions_msbc_cannot_hold_are_refused() -> None:
    code = msbc.Code("wide", [msbc.Input(1, (2**32,), None, "x", "")], [], [])
    with pytest.raises(dvm.Error, match=r"MSBC: .* input 'x': a dimension of \[4294967296\] does not fit 32 bits"):
        msbc.dump(code)


def test_donated_arguments_are_those_there_are() -> None:
    for numbers in ((5,), (0, 2)):
        with pytest.raises(dvm.ArgumentError, match=r"takes 2 arguments, numbered from 0"):
            dvm.jit(lambda a, b: a + b, mode="graph", donate=numbers)
    dvm.jit(lambda a, *rest: a, mode="graph", donate=(5,))


def test_dropout_asks_for_its_seed() -> None:
    x = array(np.float32)
    with pytest.raises(dvm.ArgumentError, match=r"test_array_limits.py:\d+: dropout needs a seed"):
        x.dropout(0.5)
    with pytest.raises(TypeError, match=r"^dvm.tensor.dropout\(\) missing"):
        x.dropout()
