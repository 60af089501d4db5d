"""dvm.tensor against NumPy: operators, indexing, reductions, when things run, inside @dvm.jit, errors."""

import ctypes
import gc
import operator
import pathlib
import threading

import numpy as np
import pytest

import dvm_core as dvm
from dvm_core.frontends.array import concat, full
from dvm_core.frontends.array_record import current

rng = np.random.default_rng(11)


def f32(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def check(found, expected, rtol=1e-5, atol=1e-6):
    expected = np.asarray(expected)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found.numpy(), expected, rtol=rtol, atol=atol, equal_nan=True)


OPERATORS = ["add", "sub", "mul", "truediv", "lt", "le", "gt", "ge", "eq", "ne"]


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("shapes", [((5, 7), (5, 7)), ((5, 1), (7,)), ((), (3, 4)), ((2, 3, 1), (1, 6))])
def test_operators_of_arrays_numbers_and_ndarrays(name, shapes):
    apply = getattr(operator, name)
    x, y = (f32(*shape) for shape in shapes)
    expected = apply(x.astype(np.float64), y.astype(np.float64))
    check(apply(dvm.tensor(x), dvm.tensor(y)), expected)
    check(apply(dvm.tensor(x), y), expected)
    check(apply(x, dvm.tensor(y)), expected)
    for number in (2.5, 3, np.float32(0.5), True):
        check(apply(dvm.tensor(x), number), apply(x.astype(np.float64), number))
        check(apply(number, dvm.tensor(x)), apply(number, x.astype(np.float64)))


def test_power_negation_and_logic():
    x = np.abs(f32(4, 5)) + np.float32(0.1)
    wide = x.astype(np.float64)
    a = dvm.tensor(x)
    for found, expected in (
        (a**2, wide**2),
        (a**0.5, wide**0.5),
        (2**a, 2**wide),
        (a**a, wide**wide),
        (-a, -wide),
        (abs(-a), wide),
        (+a, wide),
        (a // 0.3, wide // np.float32(0.3)),
    ):
        check(found, expected)
    low, high = a > 0.5, a < 1.0
    check(low & high, (x > 0.5) & (x < 1.0))
    check(low | ~high, (x > 0.5) | ~(x < 1.0))
    check(low.where(a, 0), np.where(x > 0.5, x, 0))
    check(low.where(1, a), np.where(x > 0.5, 1, x))


UNARY = {
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "tanh": np.tanh,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.round,
    "trunc": np.trunc,
    "sin": np.sin,
    "cos": np.cos,
    "abs": np.abs,
    "reciprocal": np.reciprocal,
    "rsqrt": lambda x: x**-0.5,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "isfinite": np.isfinite,
    "copy": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
}


@pytest.mark.parametrize("name", UNARY)
def test_unary_methods(name):
    x = f32(6, 35) if name not in ("log", "sqrt", "rsqrt") else np.abs(f32(6, 35)) + np.float32(0.1)
    check(getattr(dvm.tensor(x), name)(), UNARY[name](x.astype(np.float64)))


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), (1, 2), (0, 1, 2, 3), (0, 3), ()])
@pytest.mark.parametrize("name", ["sum", "mean", "max", "min"])
def test_reductions(name, axis, keepdims):
    x = f32(3, 4, 5, 6)
    check(getattr(dvm.tensor(x), name)(axis, keepdims), getattr(np, name)(x.astype(np.float64), axis=axis, keepdims=keepdims), atol=1e-5)


@pytest.mark.parametrize(
    "shapes", [((4, 5), (5, 6)), ((5,), (5, 6)), ((4, 5), (5,)), ((5,), (5,)), ((2, 1, 4, 5), (3, 5, 6)), ((7, 4, 5), (5,))]
)
def test_matmul_like_numpy(shapes):
    a, b = (f32(*shape) for shape in shapes)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    check(dvm.tensor(a) @ dvm.tensor(b), expected, atol=1e-5)
    check(dvm.tensor(a) @ b, expected, atol=1e-5)
    check(a @ dvm.tensor(b), expected, atol=1e-5)


INDICES = [
    0,
    -1,
    slice(None),
    slice(1, 3),
    slice(None, None, -1),
    slice(4, 0, -2),
    slice(3, 3),
    Ellipsis,
    None,
    (0, 1),
    (slice(None), 2),
    (..., 0),
    (None, 0, slice(1, None), None),
    (slice(None, None, 2), -2, slice(5, 1, -3)),
    [0, 2, 2],
    (slice(None), [4, -1]),
    (1, [0, 3]),
    (slice(2), 1, [0, 3]),
    (np.array([[0, 1], [3, -4]]),),
    (slice(1, 3), np.int64(2)),
]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_indexing_like_numpy(index):
    x = f32(4, 5, 6)
    check(dvm.tensor(x)[index], x[index])


def test_shapes():
    x = f32(4, 6, 5)
    a = dvm.tensor(x)
    check(a.reshape(8, -1), x.reshape(8, -1))
    check(a.reshape((-1,)), x.reshape(-1))
    check(a.T, x.T)
    check(a.transpose(1, 0, 2), x.transpose(1, 0, 2))
    check(a.swapaxes(0, -1), x.swapaxes(0, -1))
    check(a.broadcast_to((2, 4, 6, 5)), np.broadcast_to(x, (2, 4, 6, 5)))
    check(concat([a, a[:1], a * 2]), np.concatenate([x, x[:1], x * 2]))
    check(full((2, 3), 7, "int32"), np.full((2, 3), 7))
    check(dvm.tensor([1, 0, 3]).one_hot(4), np.eye(4)[[1, 0, 3]])
    check(a.softmax(1), np.exp(x) / np.exp(x).sum(1, keepdims=True))
    assert (a.ndim, a.size, len(a), a.dtype) == (3, 120, 4, "float32")


@pytest.mark.parametrize(
    "source, target", [("float32", "int32"), ("int32", "float32"), ("int64", "bool"), ("bool", "float64"), ("float64", "float32")]
)
def test_astype(source, target):
    x = (f32(5, 6) * 3).astype(source)
    check(dvm.tensor(x).astype(target), x.astype(target))
    assert dvm.tensor(x).astype(source).dtype == source


def test_what_tensor_accepts():
    assert dvm.tensor(1.5).dtype == dvm.float32 and dvm.tensor([1, 2]).dtype == dvm.int64 and dvm.tensor(True).dtype == dvm.bool_
    assert dvm.tensor(np.float64(1)).dtype == "float64" and dvm.tensor([0.5], "float64").dtype == "float64"
    x = f32(3)
    assert dvm.tensor(x).numpy() is x
    a = dvm.tensor(x)
    assert dvm.tensor(a) is a and float(a[0]) == x[0] and int(dvm.tensor(7)) == 7 and [10, 20][dvm.tensor(1)] == 20
    assert np.asarray(a * 2, np.float64).dtype == np.float64 and (a + 0).tolist() == x.tolist()


def test_nothing_runs_until_a_value_is_read():
    launches = dvm.stats()["launches"]
    a = dvm.tensor(f32(8, 8))
    b = (a + 1).exp() @ a
    c = b.sum()
    assert dvm.stats()["launches"] == launches and "not computed yet" in repr(b)
    c.item()
    assert dvm.stats()["launches"] == launches + 1
    b.numpy()  # was alive, so it was kept by the same run
    assert dvm.stats()["launches"] == launches + 1


def test_what_nobody_holds_is_not_kept():
    a = dvm.tensor(f32(64, 64))
    h = (a * 2).tanh()
    y = h + 1
    del h
    y.numpy()
    program = dvm.programs()[-1]
    assert len(program.instructions) == 3 and [i for i in program.core.kept() if i >= program.core.input_count] == [3]


def test_a_long_loop_does_not_grow_a_graph():
    a = dvm.tensor(np.zeros((4, 4), np.float32))
    for _ in range(300):
        a = a + 1
        a.numpy()
    assert current().graph.size() == 0
    check(a, np.full((4, 4), 300.0))


def test_results_are_read_only_and_share_no_surprise():
    y = dvm.tensor(f32(4)) * 2
    with pytest.raises(ValueError, match="read-only"):
        y.numpy()[0] = 1


def test_threads_have_graphs_of_their_own():
    found = {}

    def work(number):
        a = dvm.tensor(np.full((50, 50), number, np.float32))
        for _ in range(20):
            a = a * 1.0 + 1
        found[number] = a.numpy()[0, 0]

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {n: n + 20 for n in range(4)}


# ---- inside captured functions --------------------------------------------------------------------------------


def test_jit_captures_a_call_as_one_program():
    @dvm.jit
    def layer(x, w):
        h = (x @ w).tanh()
        return h, h.sum(-1)

    x, w = f32(9, 6), f32(6, 5)
    launches = dvm.stats()["launches"]
    h, total = layer(dvm.tensor(x), dvm.tensor(w))
    assert dvm.stats()["launches"] == launches + 1
    expected = np.tanh(x.astype(np.float64) @ w)
    check(h, expected)
    check(total, expected.sum(-1))
    assert dvm.programs()[-1].name.endswith("layer")


def test_python_drives_branches_and_loops_inside_jit():
    @dvm.jit
    def steps(x, n):
        for _ in range(n):
            x = x * 0.5 if x.sum() > 1 else x + 1
        return x

    def reference(x, n):
        for _ in range(n):
            x = x * 0.5 if x.sum() > 1 else x + 1
        return x

    x = np.abs(f32(4))
    for n in (0, 1, 5, 9):
        check(steps(dvm.tensor(x), n), reference(x, n))


def test_results_of_one_captured_call_go_into_the_next():
    @dvm.jit
    def step(w, x):
        return w - (w * x).mean() * 0.1

    w, x = f32(5), f32(5)
    expected = w.astype(np.float64)
    found = dvm.tensor(w)
    for _ in range(10):
        found = step(found, dvm.tensor(x))
        expected = expected - (expected * x).mean() * 0.1
    check(found, expected)
    gc.collect()
    check(found * 2, expected * 2)


def test_a_value_left_behind_by_a_captured_call_is_still_there():
    kept = []

    @dvm.jit
    def leak(x):
        kept.append(x * 3)
        return x + 1

    x = f32(4)
    leak(dvm.tensor(x))
    check(kept[0], x * 3.0)


# ---- errors --------------------------------------------------------------------------------


def raised(kind, text, body, marker):
    with pytest.raises(kind, match=text) as caught:
        body()
    lines = pathlib.Path(__file__).read_text().splitlines()
    assert (caught.value.file, caught.value.line) == (__file__, next(i for i, line in enumerate(lines, 1) if marker in line))
    return caught.value


def test_errors_name_op_dtypes_shapes_and_line():
    a, i = dvm.tensor(f32(3, 4)), dvm.tensor(np.arange(4))

    def mixed():
        return a + i  # mixed

    def shapes():
        return a * dvm.tensor(f32(3, 5))  # shapes

    def inner():
        return a @ a  # inner

    def sixteen():
        return dvm.tensor(np.zeros(3, np.uint16))  # sixteen

    def bits():
        return a.bits()  # bits

    def mask():
        return a[a > 0]  # mask

    def apart():
        return dvm.tensor(f32(2, 3, 4))[1, :, [0, 2]]  # apart

    def outside():
        return a[7]  # outside

    def axis():
        return a.sum(3)  # axis

    error = raised(dvm.DtypeError, r"f32\[3,4\] and i64\[4\], and nothing is promoted", mixed, "# mixed")
    assert error.op == "ADD" and error.dtypes == ("float32", "int64") and error.shapes == ((3, 4), (4,))
    error = raised(dvm.ShapeError, "do not broadcast", shapes, "# shapes")
    assert error.op == "MUL" and error.shapes == ((3, 4), (3, 5))
    raised(dvm.ShapeError, "inner extents 4 and 3", inner, "# inner")
    raised(dvm.DtypeError, "uint16'\\) is no dtype; there are float32, float16", sixteen, "# sixteen")
    raised(dvm.DtypeError, "bits: is for bfloat16 arrays, got f32", bits, "# bits")
    raised(dvm.UnsupportedError, "boolean mask", mask, "# mask")
    raised(dvm.UnsupportedError, "index in two steps", apart, "# apart")
    raised(dvm.ArgumentError, "index 7 is out of range for axis 0", outside, "# outside")
    raised(dvm.ArgumentError, "axis 3 is out of range", axis, "# axis")


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_sum_and_mean_count_as_numpy_does(dtype, axis):
    x = np.array([[1, 0, 120], [1, 1, 100], [0, 1, 90]]).astype(dtype)
    total, mean = dvm.tensor(x).sum(axis), dvm.tensor(x).mean(axis)
    assert total.dtype == ("int64" if x.dtype.kind in "biu" else dtype) and mean.dtype == str(x.mean(axis).dtype)
    np.testing.assert_array_equal(total.numpy(), x.sum(axis))
    np.testing.assert_allclose(mean.numpy(), x.mean(axis), rtol=1e-6)
    assert (dvm.tensor(x) > 0).sum().item() == (x > 0).sum()


def test_torch_tensors_are_taken_where_they_are():
    torch = pytest.importorskip("torch")
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bool, torch.int8, torch.uint8, torch.int32, torch.int64):
        t = (torch.arange(24).reshape(2, 3, 4) - 7).to(dtype)
        for view in (t, t.mT, t[:, 1:], t[1, :, ::2], t[:0]):
            a = dvm.tensor(view)
            assert a.shape == tuple(view.shape) and str(a.dtype) == str(dtype).removeprefix("torch.")
            np.testing.assert_array_equal(a.copy().numpy(), view.numpy())
    t = torch.zeros(3)
    a = dvm.tensor(t)
    t += 2
    assert (a + 1).numpy().tolist() == [3, 3, 3]
    with pytest.raises(RuntimeError, match="requires grad"):
        dvm.tensor(torch.ones(2, requires_grad=True))
    with pytest.raises(RuntimeError, match="negative bit"):
        dvm.tensor(torch._neg_view(torch.ones(2)))


def test_areas_side_by_side_do_not_use_each_others_repeated_rows():
    # A worker takes pieces of both in turn: rows of gain and bias are repeated once before the tiles of the first area, none in the second.
    function = dvm.jit(lambda x, gain, bias, y: (x * gain + bias, (y * 2 + 1).tanh()), mode="graph")
    x, gain, bias, y = f32(4000, 100), f32(100), f32(100), f32(900, 333)
    arrays = [dvm.tensor(a) for a in (x, gain, bias, y)]
    for _ in range(40):
        first, second = function(*arrays)
        np.testing.assert_allclose(first.numpy(), x * gain + bias, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(second.numpy(), np.tanh(y * 2 + 1), rtol=1e-5, atol=1e-5)


def test_a_pending_error_is_told_wherever_the_array_is_used():
    x = dvm.tensor(f32(5))

    def lost():
        return x[dvm.tensor(np.array([99]))]

    times_two, negative = dvm.jit(lambda a: a * 2), dvm.jit(lambda a: -a)
    for use in (times_two, negative, lambda a: a.numpy(), lambda a: a.sum().numpy(), dvm.jit(lambda a: a.sum())):
        bad = lost()
        other = x + 1
        for _ in range(2):
            with pytest.raises(dvm.Error, match="GATHER.*99"):
                use(bad)
        np.testing.assert_array_equal((x + 2).numpy(), x.numpy() + 2)
        del other
    bad = lost()
    with pytest.raises(dvm.Error, match="GATHER.*99"):
        bad.numpy()
    with pytest.raises(dvm.Error, match="GATHER.*99"):
        (bad * 2).numpy()


def test_a_foreign_tensor_that_cannot_say_whether_it_wants_a_gradient_goes_through_numpy():
    table = (ctypes.c_uint64 * 16)(1)  # major 1, and no function behind it
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)

    class Foreign:
        __dlpack_c_exchange_api__ = new(ctypes.addressof(table), b"dlpack_exchange_api", None)

        def numpy(self):
            return np.arange(3, dtype=np.float32)

    class Negated(Foreign):
        requires_grad = False

        def is_neg(self):
            return True

    for foreign in (Foreign, Negated):
        assert dvm.tensor(foreign()).numpy().tolist() == [0, 1, 2]
