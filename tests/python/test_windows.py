"""Convolutions and pools: shapes at the edges, halves, NaN and infinities, fused epilogues, every SIMD level, hostile attributes."""
from __future__ import annotations

import numpy as np
import pytest
from core_kit import Recorder, run_at
from core_programs import Program, Step, check_step, run, same_bits
from window_reference import WINDOWS

import dvm_core as dvm
from dvm_core import _core

PLAIN = (1, 1, 1, 1, 1, 1, 1, 1, 1)  # stride, before, dilation, gap, groups


def array(*shape, dtype="float32", seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def both(x, w, attrs, shape):
    """A convolution and the gradient of its weight for a result that is the gradient, checked; their bits."""
    p = Program()
    a, b = p.input(x), p.input(w)
    r = p.op("CONV2D", a, b, attrs=attrs, shape=shape)
    d = p.op("CONV2D_WEIGHT", a, r, attrs=attrs, shape=w.shape)
    recorded, _ = run(p, [r, d])
    values = [x, w, recorded.array(r), recorded.array(d)]
    check_step(p, 0, values)
    check_step(p, 1, values)
    return values[2:]


LARGE = {
    "many channels": ((1, 1, 0, 0, 1, 1, 1, 1, 1), (2, 300, 7, 7), (70, 300, 3, 3), (2, 70, 5, 5)),
    "wide": (PLAIN, (1, 5, 20, 700), (33, 5, 3, 3), (1, 33, 20, 700)),
    "tall result": (PLAIN, (1, 3, 5, 5), (600, 3, 3, 3), (1, 600, 5, 5)),
    "depthwise": ((2, 2, 1, 1, 1, 1, 1, 1, 40), (3, 40, 30, 31), (40, 1, 3, 3), (3, 40, 15, 16)),
    "groups": ((1, 1, 2, 2, 2, 2, 1, 1, 4), (2, 32, 17, 19), (64, 8, 3, 3), (2, 64, 17, 19)),
    "one output": ((1, 1, 0, 0, 1, 1, 1, 1, 1), (9, 8, 6, 6), (20, 8, 6, 6), (9, 20, 1, 1)),
    "gaps": ((1, 1, 2, 2, 1, 1, 3, 2, 1), (1, 12, 20, 20), (16, 12, 3, 3), (1, 16, 60, 41)),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", LARGE)
def test_bits_of_large_ones_depend_on_shapes_alone(name, dtype):
    attrs, x, w, shape = LARGE[name]
    x, w = array(*x, dtype=dtype), array(*w, dtype=dtype)
    want = both(x, w, attrs, shape)
    for threads, tile in ((1, 0), (2, 0), (2, 100), (1, 5000)):
        _core.set_threads(threads)
        _core.set_tile_elements(tile)
        got = both(x, w, attrs, shape)
        assert all(same_bits(a, b) for a, b in zip(got, want, strict=True)), (threads, tile)


def test_it_is_the_product_with_the_window_matrix_bit_for_bit():
    x, w = array(2, 40, 9, 9), array(24, 40, 3, 3)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    matrix = np.stack([padded[:, :, ty:ty + 9, tx:tx + 9] for ty in range(3) for tx in range(3)], 2).reshape(2, 360, 81)
    p = Program()
    a, b, m = p.input(x), p.input(w), p.input(np.ascontiguousarray(matrix))
    r = p.op("CONV2D", a, b, attrs=PLAIN, shape=(2, 24, 9, 9))
    product = p.op("MATMUL", p.op("RESHAPE", b, shape=(24, 360)), m, attrs=(0, 0))
    recorded, _ = run(p, [r, product])
    assert same_bits(recorded.array(r).reshape(2, 24, 81), recorded.array(product))


def test_operands_may_be_views():
    x, w = array(7, 2, 6, 8).transpose(1, 2, 3, 0)[:, ::-1], array(3, 3, 5, 6).transpose(2, 3, 1, 0)[:, :, ::-1]
    both(x, w, PLAIN, (2, 5, 8, 7))


@pytest.mark.parametrize("x, w, shape", [
    ((0, 3, 5, 5), (4, 3, 3, 3), (0, 4, 5, 5)),  # no images
    ((2, 3, 0, 5), (4, 3, 3, 3), (2, 4, 0, 5)),  # no rows, and none come of it
    ((2, 3, 0, 5), (4, 3, 3, 3), (2, 4, 2, 5)),  # nothing but padding
    ((2, 0, 5, 5), (4, 0, 3, 3), (2, 4, 5, 5)),  # no channels
    ((2, 3, 5, 5), (0, 3, 3, 3), (2, 0, 5, 5)),
    ((2, 3, 5, 5), (4, 3, 3, 3), (2, 4, 0, 0)),
])
def test_empty_ones_are_zeros(x, w, shape):
    made = both(array(*x), array(*w), PLAIN, shape)
    assert not made[0].any() and (0 not in shape or not made[1].any())


def test_nan_and_infinity_reach_the_results_that_see_them():
    x, w = array(1, 1, 6, 6), np.ones((1, 1, 3, 3), np.float32)
    x[0, 0, 2, 2], x[0, 0, 5, 5] = np.nan, np.inf
    got = both(x, w, PLAIN, (1, 1, 6, 6))[0]
    assert np.isnan(got[0, 0, 1:4, 1:4]).all() and np.isnan(got).sum() == 9 and np.isinf(got).sum() == 4


@pytest.mark.parametrize("op, attrs, shape", [
    ("CONV2D", PLAIN, (2, 6, 9, 9)), ("MAX_POOL2D", (3, 3, 2, 2, 1, 1, 1, 1), (2, 4, 5, 5)),
    ("AVG_POOL2D", (3, 3, 2, 2, 1, 1, 1, 1, 1, 0), (2, 4, 5, 5))])
def test_halves_are_computed_in_float32_and_rounded_once(op, attrs, shape):
    x, w = array(2, 4, 9, 9, dtype="float16"), array(6, 4, 3, 3, dtype="float16")
    operands = [x, w] if op == "CONV2D" else [x]
    p = Program()
    out = p.op(op, *map(p.input, operands), attrs=attrs, shape=shape)
    got = run(p, [out])[0].array(out)
    want = WINDOWS[op](Step(op, (), attrs, shape), *(o.astype(np.float64) for o in operands))
    assert got.dtype == np.float16
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=2e-3)


def test_halves_in_the_gradients():
    x, g = array(2, 4, 9, 9, dtype="float16"), array(2, 4, 5, 5, dtype="float16", seed=1)
    p = Program()
    a, b = p.input(x), p.input(g)
    weight = p.op("CONV2D_WEIGHT", a, b, attrs=(2, 2, *PLAIN[2:]), shape=(4, 4, 3, 3))
    largest = p.op("MAX_POOL2D_GRAD", a, b, attrs=(3, 3, 2, 2, 1, 1, 1, 1), shape=x.shape)
    mean = p.op("AVG_POOL2D_GRAD", b, attrs=(3, 3, 2, 2, 1, 1, 1, 1, 0, 0), shape=x.shape)
    recorded, _ = run(p, [weight, largest, mean])
    for value, operands in ((weight, [x, g]), (largest, [x, g]), (mean, [g])):
        s = p.steps[value - 2]
        want = WINDOWS[s.op](s, *(o.astype(np.float64) for o in operands))
        np.testing.assert_allclose(recorded.array(value), want, rtol=2e-3, atol=1e-2)


# ---- pools ----------------------------------------------------------------------------------------------------------------------------


def test_the_first_of_equal_elements_gets_the_gradient():
    x = np.array([1, 3, 3, 0, 3, 2, np.nan, 9, np.nan], np.float32).reshape(1, 1, 1, 9)
    g = np.array([1, 2, 4, 8], np.float32).reshape(1, 1, 1, 4)
    p = Program()
    a, b = p.input(x), p.input(g)
    attrs = (1, 3, 1, 2, 0, 0, 1, 1)
    pool = p.op("MAX_POOL2D", a, attrs=attrs, shape=(1, 1, 1, 4))
    grad = p.op("MAX_POOL2D_GRAD", a, b, attrs=attrs, shape=x.shape)
    pick = p.op("MAX_POOL2D", a, a, attrs=attrs, shape=(1, 1, 1, 4))
    recorded, _ = run(p, [pool, grad, pick])
    np.testing.assert_array_equal(recorded.array(pool).ravel(), [3, 3, np.nan, np.nan])
    np.testing.assert_array_equal(recorded.array(grad).ravel(), [0, 1, 2, 0, 0, 0, 4, 0, 8])  # but the last NaN
    assert same_bits(recorded.array(pick), recorded.array(pool))


def test_a_window_that_sees_nothing_is_minus_infinity_or_zero():
    x = array(1, 2, 3, 3)
    p = Program()
    a = p.input(x)
    largest = p.op("MAX_POOL2D", a, attrs=(2, 2, 2, 2, 4, 4, 1, 1), shape=(1, 2, 8, 8))
    mean = p.op("AVG_POOL2D", a, attrs=(2, 2, 2, 2, 4, 4, 0, 0, 0, 0), shape=(1, 2, 8, 8))
    recorded, _ = run(p, [largest, mean])
    got = recorded.array(largest)
    assert np.isneginf(got[..., :2, :2]).all() and np.isneginf(got[..., 4:, :]).all() and np.isfinite(got[..., 2:4, 2:4]).all()
    assert not recorded.array(mean)[..., 5:, :].any() and np.isfinite(recorded.array(mean)).all()


# ---- areas ----------------------------------------------------------------------------------------------------------------------------


def test_bias_batch_norm_residual_and_relu_run_in_the_convolutions_area():
    x, w, skip = array(2, 8, 12, 12), array(16, 8, 3, 3), array(2, 16, 12, 12)
    bias, scale, shift = (array(16, 1, 1, seed=i) for i in range(3))
    p = Program()
    v = [p.input(o) for o in (x, w, bias, scale, shift, skip)]
    r = p.op("ADD", p.op("CONV2D", v[0], v[1], attrs=PLAIN, shape=(2, 16, 12, 12)), v[2])
    r = p.op("ADD", p.op("ADD", p.op("MUL", r, v[3]), v[4]), v[5])
    r = p.op("MAXIMUM", -1, r, imms=(0.0,))
    recorded, launches = run(p, [r])
    assert [(a.kind, a.instructions) for a in launches[0].program.areas] == [("cube", (0, 1, 2, 3, 4, 5))]
    want = WINDOWS["CONV2D"](p.steps[0], x.astype(np.float64), w.astype(np.float64)) + bias
    np.testing.assert_allclose(recorded.array(r), np.maximum(want * scale + shift + skip, 0), rtol=1e-5, atol=1e-5)


def test_means_over_planes_are_part_of_the_area():
    p = Program()
    a, b = p.input(array(2, 3, 40, 40)), p.input(array(70, 3, 3, 3))
    r = p.op("MEAN", p.op("CONV2D", a, b, attrs=PLAIN, shape=(2, 70, 40, 40)), attrs=(0, 2, 3))
    assert [a.instructions for a in run(p, [r])[1][0].program.areas] == [(0, 1)]


@pytest.mark.parametrize("level", ["baseline", "avx2", "avx512"])
def test_every_simd_level(level):
    run_at(level, "from test_windows import LARGE, array, both\n"
                  "for attrs, x, w, shape in LARGE.values(): both(array(*x), array(*w), attrs, shape)")


# ---- errors ---------------------------------------------------------------------------------------------------------------------------

X, W = (2, 6, 5, 5), (4, 6, 3, 3)
ERRORS = [
    ("conv2d", (X, W), PLAIN[:8], (2, 4, 5, 5), "CONV2D: takes 9 attributes"),
    ("conv2d", (X, W), (0, *PLAIN[1:]), (2, 4, 5, 5), "CONV2D: stride must be 1 to 1048576, got 0"),
    ("conv2d", (X, W), (*PLAIN[:8], -1), (2, 4, 5, 5), "CONV2D: groups must be"),
    ("conv2d", (X, W), (1, 1, 2**60, 0, *PLAIN[4:]), (2, 4, 5, 5), "CONV2D: padding of"),
    ("conv2d", (X, (4, 5, 3, 3)), PLAIN, (2, 4, 5, 5), "must have 6 / 1 input channels"),
    ("conv2d", (X, W), (*PLAIN[:8], 4), (2, 4, 5, 5), "must have 6 / 4 input channels"),
    ("conv2d", (X, (5, 3, 3, 3)), (*PLAIN[:8], 2), (2, 5, 5, 5), "groups must divide the output channels"),
    ("conv2d", (X, W), PLAIN, (2, 5, 5, 5), "must have the weight's 4 output channels"),
    ("conv2d", (X, W), PLAIN, (3, 4, 5, 5), "the batches differ"),
    ("conv2d", (X, (4, 6, 0, 3)), PLAIN, (2, 4, 5, 5), "the weight has no taps"),
    ("conv2d", (X, W), PLAIN, (2, 4, 5), "needs rank 4"),
    ("conv2d", (X, (4, 6, 9)), PLAIN, (2, 4, 5, 5), "needs rank 4"),
    ("conv2d", (X, W), PLAIN, (2, 4, 2**33, 1), "is too"),
    ("max_pool2d", (X,), (2, 2, 2, 2, 0, 0, 1, 1), (2, 5, 2, 2), "do not become planes"),
    ("max_pool2d", (X,), (2, 0, 2, 2, 0, 0, 1, 1), (2, 6, 2, 2), "taps must be 1 to"),
    ("max_pool2d", (X, W), (2, 2, 2, 2, 0, 0, 1, 1), (2, 6, 2, 2), "must have the shape of"),
    ("max_pool2d", (X, X, X), (2, 2, 2, 2, 0, 0, 1, 1), (2, 6, 2, 2), "takes 1 or 2 operands"),
    ("max_pool2d_grad", (X, X), (2, 2, 2, 2, 0, 0, 1, 1), (2, 6, 7, 7), "must have the shape of the result"),
    ("avg_pool2d", (X,), (2, 2, 2, 2, 0, 0, 0, 0, 2, 0), (2, 6, 2, 2), "whether padding counts"),
    ("avg_pool2d", (X,), (2, 2, 2, 2, 0, 0, 0, 0, 0, -1), (2, 6, 2, 2), "a divisor of -1"),
]


@pytest.mark.parametrize("op, operands, attrs, shape, message", ERRORS)
def test_errors_say_what_does_not_fit(op, operands, attrs, shape, message):
    r = Recorder()
    values = [r.input(np.zeros(o, np.float32)) for o in operands]
    with pytest.raises(_core.Error, match=message):
        getattr(r, op)(*values, attrs=attrs, shape=shape)


@pytest.mark.parametrize("far", [2**52, -(2**52)])
def test_attributes_at_their_limits_are_only_padding(far):
    x, w = array(1, 2, 4, 4), array(3, 2, 2, 2)
    limit = 2**20
    assert not both(x, w, (limit, limit, far, far, limit, limit, limit, limit, 1), (1, 3, 3, 3))[0].any()
    r = Recorder()
    a = r.input(x)
    r.graph.flush([out := r.max_pool2d(a, attrs=(2, 2, limit, limit, far, far, limit, limit), shape=(1, 2, 3, 3))])
    assert np.isneginf(r.array(out)).all()


# ---- dvm.tensor -----------------------------------------------------------------------------------------------------------------------


def test_methods_of_arrays():
    x, w, b = array(2, 4, 9, 8), array(6, 2, 3, 3), array(6)
    wide = [o.astype(np.float64) for o in (x, w, b)]

    def want(op, attrs, shape, *operands):
        return WINDOWS[op](Step(op, (), attrs, shape), *operands)

    a = dvm.tensor(x)
    found = a.conv2d(dvm.tensor(w), dvm.tensor(b), stride=(2, 1), padding=1, dilation=(1, 2), groups=2)
    exact = want("CONV2D", (2, 1, 1, 1, 1, 2, 1, 1, 2), (2, 6, 5, 6), *wide[:2]) + wide[2][:, None, None]
    np.testing.assert_allclose(found.numpy(), exact, rtol=1e-5, atol=1e-5)
    assert a.conv2d(dvm.tensor(w), stride=3, padding="same", groups=2).shape == (2, 6, 3, 3)
    assert a.conv2d(dvm.tensor(w), padding="valid", groups=2).shape == (2, 6, 7, 6)
    np.testing.assert_array_equal(a.max_pool2d(2).numpy(), x[:, :, :8].reshape(2, 4, 4, 2, 4, 2).max((3, 5)))
    assert a.max_pool2d(3, 2, 1, ceil_mode=True).shape == (2, 4, 5, 5)
    np.testing.assert_allclose(a.avg_pool2d((2, 4)).numpy(), x[:, :, :8].reshape(2, 4, 4, 2, 2, 4).mean((3, 5)), rtol=1e-5, atol=1e-6)
    padded = want("AVG_POOL2D", (3, 3, 2, 2, 1, 1, 1, 1, 0, 0), (2, 4, 5, 4), wide[0])
    np.testing.assert_allclose(a.avg_pool2d(3, 2, 1, count_include_pad=False).numpy(), padded, rtol=1e-5, atol=1e-6)


def test_errors_of_the_methods_say_where_and_what():
    a = dvm.tensor(array(2, 4, 5, 5))
    with pytest.raises(dvm.ShapeError, match=r"test_windows.py:\d+: CONV2D: needs rank 4 .*, got f32\[4,3\]"):
        a.conv2d(dvm.tensor(array(4, 3)))
    with pytest.raises(dvm.ArgumentError, match="stride must be an integer from 1 or two"):
        a.max_pool2d(2, 0)
    with pytest.raises(dvm.ArgumentError, match="padding must be an integer from 0 or two"):
        a.avg_pool2d(2, 1, (1, 2, 3))
    for wrong in (lambda: a.conv2d(dvm.tensor(array(4, 4, 3, 3)), padding=-1), lambda: a.max_pool2d(2, padding=(0, -1))):
        with pytest.raises(dvm.ArgumentError, match=r"test_windows.py:\d+: padding must be an integer from 0 .* got"):
            wrong()
    with pytest.raises(dvm.ArgumentError, match=r"padding \[2, 2\] is more than half of a window of \[3, 3\]"):
        a.avg_pool2d(3, padding=2)
    for wrong in (lambda: a.conv2d(dvm.tensor(array(4, 4, 3, 6))), lambda: a.max_pool2d((2, 3), dilation=3), lambda: a.max_pool2d(2**20)):
        with pytest.raises(dvm.ShapeError, match=r"a window of \[.*\], .* is larger than the image of \[5, 5\] with padding \[0, 0\]"):
            wrong()
    assert dvm.tensor(array(2, 4, 0, 5)).max_pool2d(2).shape == (2, 4, 0, 2)
    with pytest.raises(dvm.Error, match="must have 4 / 1 input channels"):
        a.conv2d(dvm.tensor(array(6, 3, 3, 3)))
