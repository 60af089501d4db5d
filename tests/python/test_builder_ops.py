"""Every op of a kernel body against float64 NumPy, with the shapes, strides and edge values that matter to it."""

import numpy as np
import pytest

import dvm_core as dvm

rng = np.random.default_rng(7)
POSITIVE = ("sqrt", "log")


def f32(*shape, low=-3.0, high=3.0):
    return rng.uniform(low, high, shape).astype(np.float32)


def build(body, *dtypes):
    """A kernel of one load per dtype and one store of what `body` makes of them."""

    @dvm.kernel
    def kernel(k, a, b, c):
        loads = [k.load(index, dtype) for index, dtype in zip((a, b, c), dtypes, strict=False)]
        made = body(k, *loads)
        return [k.store(item) for item in made] if isinstance(made, list) else k.store(made)

    def call(*arrays):
        return kernel(*arrays, *[0] * (3 - len(arrays)))

    call.kernel = kernel
    return call


def check(found, expected, rtol=1e-5, atol=1e-6):
    expected = np.asarray(expected)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol, equal_nan=True)


UNARY = {
    "sqrt": np.sqrt,
    "abs": np.abs,
    "log": np.log,
    "exp": np.exp,
    "reciprocal": np.reciprocal,
    "round": np.round,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "copy": lambda x: x,
}


@pytest.mark.parametrize("shape", [(1,), (7,), (33, 65), (2, 3, 5, 7)])
@pytest.mark.parametrize("name", UNARY)
def test_unary(name, shape):
    x = f32(*shape, low=0.1 if name in POSITIVE else -3.0)
    found = build(lambda k, a: getattr(k, name)(a), "float32")(x)
    assert found.dtype == np.float32
    check(found, UNARY[name](x.astype(np.float64)))


def test_isfinite_and_logical_not():
    x = np.array([0, 1, np.nan, np.inf, -np.inf], np.float32)
    np.testing.assert_array_equal(build(lambda k, a: k.isfinite(a), "float32")(x), np.isfinite(x))
    np.testing.assert_array_equal(build(lambda k, a: k.logical_not(k.isfinite(a)), "float32")(x), ~np.isfinite(x))
    check(build(lambda k, a: k.logical_not(a), "float32")(np.array([0, 1, 1], np.float32)), [1, 0, 0])


BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "less": np.less,
    "less_equal": np.less_equal,
}


@pytest.mark.parametrize("shapes", [((33, 65), (33, 65)), ((33, 1), (65,)), ((1,), (33, 65)), ((2, 3, 4), (3, 1)), ((5, 1, 7), (1, 6, 1))])
@pytest.mark.parametrize("name", BINARY)
def test_binary_broadcasts_like_numpy(name, shapes):
    x, y = (np.round(f32(*shape), 1) + np.float32(0.05) * (i == 1 and name == "div") for i, shape in enumerate(shapes))
    expected = BINARY[name](x.astype(np.float64), y.astype(np.float64))
    found = build(lambda k, a, b: getattr(k, name)(a, b), "float32", dvm.float32)(x, y)
    assert found.dtype == (np.bool_ if expected.dtype == np.bool_ else np.float32)
    check(found, expected)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("number", [2.5, -3, True])
@pytest.mark.parametrize("name", BINARY)
def test_a_number_on_either_side(name, number, side):
    x = f32(9, 11)
    pair = (lambda a: (number, a)) if side == "left" else (lambda a: (a, number))
    check(build(lambda k, a: getattr(k, name)(*pair(a)), "float32")(x), BINARY[name](*pair(x.astype(np.float64))))


@pytest.mark.parametrize(
    "name, dtype",
    [(name, "int32") for name in ("add", "sub", "mul", "maximum", "minimum", "less", "equal")]
    + [(name, "int64") for name in ("add", "sub", "less", "equal")],
)
def test_integers(name, dtype):
    x, y = (rng.integers(-(2**30), 2**30, (17, 9)).astype(dtype) for _ in range(2))
    if name == "mul":
        x, y = x // 2**16, y // 2**16
    op, reference = (lambda k, *sides: getattr(k, name)(*sides)), BINARY[name]
    np.testing.assert_array_equal(build(op, dtype, dtype)(x, y), reference(x, y))
    np.testing.assert_array_equal(build(lambda k, a: op(k, a, 7), dtype)(x), reference(x, 7))
    np.testing.assert_array_equal(build(lambda k, a: op(k, 7, a), dtype)(x), reference(7, x))


def test_logical_ops_of_bools_and_numbers():
    x, y = (rng.integers(0, 2, (13, 7)) for _ in range(2))
    for dtype in ("bool", "float32"):
        for name, reference in (("logical_and", np.logical_and), ("logical_or", np.logical_or)):
            found = build(lambda k, a, b, name=name: getattr(k, name)(a, b), dtype, dtype)(x.astype(dtype), y.astype(dtype))
            assert found.dtype == dtype
            np.testing.assert_array_equal(found, reference(x, y).astype(dtype))


@pytest.mark.parametrize("exponent, multiplications", [(3, 2), (10, 4), (-8, 3), (11, 5), (15, 6), (20, 5)])
def test_a_whole_power_is_multiplications(exponent, multiplications):
    call = build(lambda k, a: k.pow(a, exponent), "float32")
    x = f32(40, 3, low=0.5, high=1.5) * rng.choice([-1, 1], (40, 3)).astype(np.float32)
    check(call(x), x.astype(np.float64) ** exponent)
    assert call.kernel.das().count("Mul.fp32") == multiplications


@pytest.mark.parametrize("exponent", [0, 1, 2.0, 0.5, 1.2, -0.5])
def test_other_powers(exponent):
    x = f32(19, 5, low=0.1)
    check(build(lambda k, a: k.pow(a, exponent), "float32")(x), x.astype(np.float64) ** exponent)
    check(build(lambda k, a: k.pow(0.91, a), "float32")(x), 0.91 ** x.astype(np.float64))
    y = f32(19, 5)
    check(build(lambda k, a, b: k.pow(a, b), "float32", "float32")(x, y), x.astype(np.float64) ** y.astype(np.float64))


def test_edges_of_power():
    x = np.array([0, -2, 0, -1.5], np.float32)
    check(build(lambda k, a, b: k.pow(a, b), "float32", "float32")(x, np.array([0, 0.5, 1.2, 3], np.float32)), [1, np.nan, 0, -3.375])


CASTS = [(a, b) for a in ("bool", "float32", "int32", "int64", "float64") for b in ("bool", "float32", "int32", "int64", "float64")]


@pytest.mark.parametrize("source, target", CASTS)
def test_cast(source, target):
    x = (np.array([-2.7, -1, -0.5, 0, 0.5, 1, 2.7, 100.9]) * (1 if source != "bool" else 1)).astype(source)
    found = build(lambda k, a: k.cast(a, target), source)(x)
    assert found.dtype == target
    np.testing.assert_array_equal(found, x.astype(target))


def test_cast_to_the_same_dtype_is_nothing():
    call = build(lambda k, a: k.cast(a, dvm.float32), "float32")
    assert "Cast" not in call.kernel.dump()


@pytest.mark.parametrize("dtype", ["float32", "int32", "int64"])
def test_select(dtype):
    cond = rng.integers(0, 2, (13, 1)).astype(bool)
    a, b = (rng.integers(-9, 9, (13, 31)).astype(dtype) for _ in range(2))
    np.testing.assert_array_equal(build(lambda k, c, x, y: k.select(c, x, y), "bool", dtype, dtype)(cond, a, b), np.where(cond, a, b))
    np.testing.assert_array_equal(build(lambda k, c, x: k.select(c, x, 4), "bool", dtype)(cond, a), np.where(cond, a, 4))
    np.testing.assert_array_equal(build(lambda k, c, x: k.select(c, 4, x), "bool", dtype)(cond, a), np.where(cond, 4, a))
    numeric = build(lambda k, c, x, y: k.select(c, x, y), dtype, dtype, dtype)
    np.testing.assert_array_equal(numeric(cond.astype(dtype) * 3, a, b), np.where(cond, a, b))


REDUCE_SHAPES = [
    ((7,), [0]),
    ((33, 65), [1]),
    ((33, 65), [0]),
    ((33, 65), []),
    ((33, 65), [-1, -2]),
    ((3, 4, 12, 13), [0, 2, 3]),
    ((2, 3, 4, 5, 6), [0, 2, 4]),
    ((511, 1024), [0]),
    ((35053,), [0]),
    ((120, 1), [1]),
    ((4, 1, 1, 9), [1, 3]),
]


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("shape, dims", REDUCE_SHAPES)
@pytest.mark.parametrize("name", ["sum", "max", "min"])
def test_reduce(name, shape, dims, keepdims):
    x = f32(*shape)
    expected = getattr(np, name)(x.astype(np.float64), axis=tuple(dims) or None, keepdims=keepdims)
    scale = max(1.0, np.prod(shape) ** 0.5) * 1e-5
    check(build(lambda k, a: getattr(k, name)(a, dims, keepdims), "float32")(x), expected, rtol=1e-4, atol=scale if name == "sum" else 0)


def test_reduce_of_dims_given_at_the_call():
    @dvm.kernel
    def kernel(k, x, dims):
        return k.store(k.sum(k.load(x, "float32"), k.int_array(dims), True))

    x = f32(4, 5, 6)
    for dims in ([0], [1, 2], [0, 2], [-1]):
        check(kernel(x, dims), x.astype(np.float64).sum(tuple(dims), keepdims=True), atol=1e-5)


def test_element_any():
    call = build(lambda k, a: k.element_any(a), "float32")
    for x, expected in ((np.zeros((300, 7)), 0), (np.eye(33), 1), (np.full(3, np.nan), 1), (np.zeros((0, 4)), 0)):
        found = call(x.astype(np.float32))
        assert found.shape == (1,) and found[0] == expected


@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize("batch", [((), ()), ((3,), ()), ((2, 1), (1, 4))])
def test_matmul_with_bias(trans_a, trans_b, batch):
    a, b, bias = f32(*batch[0], 9, 17), f32(*batch[1], 17, 5), f32(5)
    left, right = (a.swapaxes(-1, -2).copy() if trans_a else a), (b.swapaxes(-1, -2).copy() if trans_b else b)
    found = build(lambda k, x, y, z: k.matmul(x, y, trans_a, trans_b, z), *["float32"] * 3)(left, right, bias)
    check(found, a.astype(np.float64) @ b.astype(np.float64) + bias, atol=1e-4)


def test_shape_and_movement():
    x = f32(4, 6, 10)
    cases = [
        (lambda k, a: k.reshape(a, [8, -1]), x.reshape(8, -1)),
        (lambda k, a: k.permute(a, [2, 0, 1]), x.transpose(2, 0, 1)),
        (lambda k, a: k.permute(a, [-1, 0, 1]), x.transpose(2, 0, 1)),
        (lambda k, a: k.slice(a, [1, 0, 3], [2, 6, -1]), x[1:3, :, 3:]),
        (lambda k, a: k.slice_dim(a, 1, 2, -1), x[:, 2:-1]),
        (lambda k, a: k.slice_dim(a, -1, -3, 100), x[..., -3:]),
        (lambda k, a: k.concat([a, a, k.slice_dim(a, 1, 0, 1)], 1), np.concatenate([x, x, x[:, :1]], 1)),
        (lambda k, a: k.broadcast(a, [3, -1, -1, -1]), np.broadcast_to(x, (3, 4, 6, 10))),
        (lambda k, a: k.add(a, k.full(0.5, [10], "float32")), x + 0.5),
        (lambda k, a: k.exp(k.permute(k.reshape(k.mul(a, 2), [24, 10]), [1, 0])), np.exp(2.0 * x.astype(np.float64).reshape(24, 10).T)),
    ]
    for body, expected in cases:
        check(build(body, "float32")(x), expected)


def test_split_gives_a_shorter_last_piece():
    x = f32(5, 10)
    pieces = build(lambda k, a: k.split(a, 1, 4, 3), "float32")(x)
    for piece, expected in zip(pieces, np.split(x, [4, 8], 1), strict=True):
        np.testing.assert_array_equal(piece, expected)


@pytest.mark.parametrize("axis", [-1, 0, 1, 2])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_one_hot(axis, dtype):
    indices = rng.integers(0, 6, (3, 4)).astype(np.int32)
    found = build(lambda k, a: k.one_hot(a, 6, axis, 2, -1, dtype), "int32")(indices)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, np.moveaxis(np.where(np.eye(6, dtype=bool)[indices], 2, -1), -1, axis if axis >= 0 else 2))


def test_loads_and_stores_of_parts():
    x = f32(6, 8)
    index = np.array([5, 0, 0, 3], np.int32)

    @dvm.kernel
    def kernel(k, a, i):
        taken = k.gather_load(a, k.load(i, "int32"), "float32", gather_mode=1)
        return (
            k.store(k.slice_load(a, [1, 2], [3, 4], "float32")),
            k.store(k.stridedslice_load(a, [-3, 0], [100, -1], [1, 1], "float32")),
            k.store(k.view_load(a, [8, 6], [1, 8], "float32")),
            k.store(taken),
            k.pad_store(k.load(a, "float32"), 3),
            k.concat_store([k.load(a, "float32"), taken], 0),
        )

    box, strided, view, taken, padded, joined = kernel(x, index)
    np.testing.assert_array_equal(box, x[1:4, 2:6])
    np.testing.assert_array_equal(strided, x[-3:, 0:-1])
    np.testing.assert_array_equal(view, x.T)
    np.testing.assert_array_equal(taken, x[index])
    np.testing.assert_array_equal(padded, np.pad(x, ((0, 0), (0, 3))))
    np.testing.assert_array_equal(joined, np.concatenate([x, x[index]]))


def test_the_older_spellings_are_the_same_ops():
    x, y = f32(5, 6), f32(5, 6)
    found = build(lambda k, a, b: k.reduce("sum", k.unary("Exp", k.binary("Add", a, b)), [1], True), "float32", "float32")(x, y)
    check(found, np.exp(x.astype(np.float64) + y).sum(1, keepdims=True))


def test_empty_tensors_are_legal():
    found = build(lambda k, a: k.exp(k.add(a, 1.0)), "float32")(np.zeros((0, 5), np.float32))
    assert found.shape == (0, 5)
    check(build(lambda k, a: k.sum(a, [0]), "float32")(np.zeros((0, 5), np.float32)), np.zeros(5))


def test_an_operation_that_does_not_exist_names_the_nearest():
    with pytest.raises(dvm.UnknownNameError, match=r"py:\d+: a kernel has no operation 'sqrtt'; did you mean sqrt\?"):
        @dvm.kernel
        def kernel(k, x):
            return k.store(k.sqrtt(k.load(x, "float32")))
    assert not hasattr(dvm.Kernel(), "sqrtt")
