"""Six relations: dtypes, NaN, numbers on both sides, the ends of int32, one column against many."""

import numpy as np
import pytest
from dvm_kit import BF16, FLOATS, make, one

RELATIONS = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "less": np.less,
    "less_equal": np.less_equal,
}
DTYPES = ["int32", "int64", *FLOATS, *BF16]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1024, 2000), (13, 7), (1, 257)])
@pytest.mark.parametrize("name", RELATIONS)
def test_two_tensors(name, shape, dtype):
    (x, w), (y, v) = make(shape, dtype, -3, 3), make(shape, dtype, -3, 3, seed=1)
    x[0], w[0] = y[0], v[0]
    one("vector", lambda t, a, b: getattr(t, name)(a, b), RELATIONS[name](w, v), x, y, dtypes=[dtype])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", RELATIONS)
def test_rows_of_nan(name, dtype):
    (x, w), (y, v) = make((9, 65), dtype), make((9, 65), dtype, seed=1)
    for array, row in ((x, 1), (w, 1), (y, 3), (v, 3)):
        array[row] = np.nan
    x[5], w[5], y[5], v[5] = np.nan, np.nan, np.nan, np.nan
    one("vector", lambda t, a, b: getattr(t, name)(a, b), RELATIONS[name](w, v), x, y, dtypes=[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", RELATIONS)
def test_a_number_on_either_side(name, dtype):
    x, w = make((31, 33), dtype, -3, 3)
    one(
        "vector",
        lambda t, a: [getattr(t, name)(a, 1), getattr(t, name)(1, a)],
        [RELATIONS[name](w, 1), RELATIONS[name](1, w)],
        x,
        dtypes=[dtype],
    )


@pytest.mark.parametrize("name", RELATIONS)
def test_the_whole_range_of_int32(name):
    least, most = -(2**31), 2**31 - 1
    x = np.array([least, least, most, most, 0, -1, least + 1, 2**24 + 1], np.int32)
    y = np.array([most, least, least, most, least, most, least, 2**24], np.int32)
    one("vector", lambda t, a, b: getattr(t, name)(a, b), RELATIONS[name](x, y), x, y, dtypes=["int32"])
    one("vector", lambda t, a: getattr(t, name)(a, least), RELATIONS[name](x, least), x, dtypes=["int32"])


@pytest.mark.parametrize("dtype", [*DTYPES[:1], *FLOATS])
def test_a_column_against_a_narrow_table(dtype):
    (x, w), (y, v) = make((100000, 1), dtype, -3, 3), make((100000, 7), dtype, -3, 3)
    one("vector", lambda t, a, b: t.greater_equal(a, b), w >= v, x, y, dtypes=[dtype])


def test_bools_are_equal_or_not():
    (x, w), (y, v) = make((65, 7), "bool"), make((65, 7), "bool", seed=1)
    one("vector", lambda t, a, b: [t.equal(a, b), t.not_equal(a, b)], [w == v, w != v], x, y, dtypes=["bool"])
