"""Sorting, searching, scanning, indexed writes, padding and norms of dvm.tensor arrays against NumPy."""

import numpy as np
import pytest

import dvm_core as dvm

rng = np.random.default_rng(21)
X = rng.standard_normal((3, 5, 4)).astype(np.float32)
N = rng.integers(-20, 20, (3, 5)).astype(np.int32)
WIDE = X.astype(np.float64)
ROWS = np.array([2, 0, 2])
PLACES = np.argsort(X, 1)[:, :2]
NEW = rng.standard_normal((3, 2, 4)).astype(np.float32)


def put(axis):
    out = X.copy()
    np.put_along_axis(out, PLACES, NEW, axis)
    return out


def put_rows(values):
    out = X.copy()
    out[ROWS] = values
    return out


def add_rows(values):
    out = WIDE.copy()
    np.add.at(out, ROWS, values)
    return out


def logsumexp(x, axis, keepdims=False):
    return np.log(np.exp(x).sum(axis, keepdims=keepdims))


CASES = {
    "argmax of all": (lambda x: x.argmax(), WIDE.argmax()),
    "argmax of an axis": (lambda x: x.argmax(-2), WIDE.argmax(1)),
    "argmin with kept axes": (lambda x: x.argmin(2, keepdims=True), WIDE.argmin(2, keepdims=True)),
    "argmin of all with kept axes": (lambda x: x.argmin(keepdims=True), WIDE.argmin(keepdims=True)),
    "sort": (lambda x: x.sort(), np.sort(WIDE)),
    "sort descending": (lambda x: x.sort(0, descending=True), -np.sort(-WIDE, 0)),
    "argsort": (lambda x: x.argsort(1), np.argsort(WIDE, 1)),
    "topk values": (lambda x: x.topk(2, 1)[0], -np.sort(-WIDE, 1)[:, :2]),
    "topk positions": (lambda x: x.topk(3, 0, largest=False)[1], np.argsort(WIDE, 0)[:3]),
    "cumsum": (lambda x: x.cumsum(1), WIDE.cumsum(1)),
    "cumsum of all": (lambda x: x.cumsum(), WIDE.cumsum()),
    "cumsum backwards, exclusive": (lambda x: x.cumsum(0, True, True), WIDE[::-1].cumsum(0)[::-1] - WIDE),
    "gather_elements": (lambda x: x.gather_elements(PLACES, 1), np.take_along_axis(WIDE, PLACES, 1)),
    "scatter_elements": (lambda x: x.scatter_elements(PLACES, NEW, 1), put(1)),
    "scatter rows": (lambda x: x.scatter(ROWS, NEW[:1, :1]), put_rows(NEW[:1, :1])),
    "scatter a number": (lambda x: x.scatter(ROWS, 7), put_rows(7)),
    "scatter_add": (lambda x: x.scatter_add(ROWS, 2.0), add_rows(2.0)),
    "scatter_add_elements": (lambda x: x.scatter_add_elements(PLACES, NEW, 1), WIDE + put(1) * (put(1) != X)),
    "pad": (lambda x: x.pad(1, 9), np.pad(WIDE, 1, constant_values=9)),
    "pad with a pair": (lambda x: x.pad((0, 2)), np.pad(WIDE, (0, 2))),
    "pad each axis": (lambda x: x.pad(((1, 0), (0, 2), (3, 1))), np.pad(WIDE, ((1, 0), (0, 2), (3, 1)))),
    "any": (lambda x: (x > 1.5).any(1), (WIDE > 1.5).any(1)),
    "all of numbers": (lambda x: x.all((0, 2)), WIDE.all((0, 2))),
    "prod": (lambda x: x.prod((0, 2), True), WIDE.prod((0, 2), keepdims=True)),
    "norm": (lambda x: x.norm(axis=-1), np.linalg.norm(WIDE, axis=-1)),
    "norm of order 1 and 3": (lambda x: x.norm(1) + x.norm(3), np.abs(WIDE).sum() + (np.abs(WIDE) ** 3).sum() ** (1 / 3)),
    "largest norm": (lambda x: x.norm(np.inf, (0, 1)), np.abs(WIDE).max((0, 1))),
    "clamp": (lambda x: x.clamp(-0.5, 0.5), np.clip(WIDE, -0.5, 0.5)),
    "clamp from above": (lambda x: x.clamp(high=0.1), np.minimum(WIDE, 0.1)),
    "logsumexp": (lambda x: x.logsumexp(1), logsumexp(WIDE, 1)),
    "logsumexp of two axes": (lambda x: x.logsumexp((0, 2), True), logsumexp(WIDE, (0, 2), True)),
    "log_softmax": (lambda x: x.log_softmax(1), WIDE - logsumexp(WIDE, 1, True)),
    "expm1 log1p": (lambda x: x.expm1().log1p(), np.log1p(np.expm1(WIDE))),
    "tan atan": (lambda x: (x * 0.1).tan() + x.atan(), np.tan(WIDE * 0.1) + np.arctan(WIDE)),
    "sign": (lambda x: x.sign(), np.sign(WIDE)),
    "isnan or isinf": (lambda x: (x / 0 * 0).isnan() & ~(x / 0).isinf(), np.zeros(X.shape, bool)),
    "remainder": (lambda x: x % 0.7, WIDE % np.float32(0.7)),
    "remainder of a number": (lambda x: 2.5 % x, 2.5 % WIDE),
}


@pytest.mark.parametrize("name", CASES)
def test_methods_like_numpy(name):
    method, expected = CASES[name]
    found = method(dvm.tensor(X))
    expected = np.asarray(expected)
    assert found.shape == expected.shape
    assert found.dtype.name == (expected.dtype.name if expected.dtype.kind in "bi" else "float32")
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-5)


INTEGERS = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | 12,
    "xor": lambda a, b: 5 ^ a,
    "not": lambda a, b: ~a,
    "shift left": lambda a, b: a << 3,
    "shift right": lambda a, b: a >> 1,
    "remainder": lambda a, b: a % 7,
    "cumsum": lambda a, b: a.cumsum(1),
    "prod": lambda a, b: a.prod(1),
    "argsort": lambda a, b: a.argsort(1, kind="stable") if isinstance(a, np.ndarray) else a.argsort(1),
    "and of bools": lambda a, b: (a > 0) & (b > 0),
    "xor of bools": lambda a, b: (a > 0) ^ (b > 0),
    "not of bools": lambda a, b: ~(a > 0),
}


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_and_bools_like_numpy(name):
    expected = INTEGERS[name](N, N.T.copy().reshape(N.shape))
    found = INTEGERS[name](dvm.tensor(N), dvm.tensor(N.T.copy().reshape(N.shape)))
    assert found.dtype.name == expected.dtype.name
    np.testing.assert_array_equal(found.numpy(), expected)


def test_rank_0_and_empty_arrays():
    one = dvm.tensor(np.float32(3))
    assert (one.argmax().item(), one.sort().item(), one.argsort().item(), one.cumsum().tolist()) == (0, 3.0, 0, [3.0])
    assert (one.any().item(), one.prod().item(), one.norm().item(), one.pad(()).item()) == (True, 3.0, 3.0, 3.0)
    empty = dvm.tensor(np.zeros((0, 3), np.float32))
    assert empty.sort(0).shape == (0, 3) and empty.cumsum(1).shape == (0, 3) and empty.prod(0).tolist() == [1, 1, 1]
    assert empty.pad(1).tolist() == [[0] * 5] * 2
    with pytest.raises(dvm.Error, match="ARGMAX: axis 0 of .* is empty"):
        empty.argmax(0)


def test_logsumexp_of_infinities():
    x = np.array([[-np.inf, -np.inf], [np.inf, 1], [1000, 1000]], np.float32)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(dvm.tensor(x).logsumexp(1).numpy(), [-np.inf, np.inf, 1000 + np.log(2)])


def test_errors_name_op_dtypes_and_the_line():
    x = dvm.tensor(X)
    for wrong, words in (
        (lambda: x & x, "BIT_AND: does not take float32.*bool, int8"),
        (lambda: x.scatter(np.array([0.5]), 1), "SCATTER: the index must be int32 or int64, got f64"),
        (lambda: x.topk(9), r"TOPK: 9 of the 4 elements along axis 2 of float32\[3,5,4\]"),
        (lambda: x.pad(-1), "pad takes a number, a pair"),
        (lambda: x.sort(3), "axis 3 is out of range"),
        (lambda: x.scatter_elements(PLACES, NEW[:1, :, :1] > 0, 1), "operands are"),
    ):
        with pytest.raises(dvm.Error, match=rf"test_array_select.py:\d+.*{words}"):
            wrong()
