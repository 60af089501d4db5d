"""float16 and bfloat16 as users see them: dvm.tensor, kernels, MSBC files, NumPy arrays in and out; integers where a float is needed."""
from __future__ import annotations

import numpy as np
import pytest
from halves import ALL, EPS, HALVES, bits_of, rounded, same, samples, widen

import dvm_core as dvm
from dvm_core.agent import values

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def of(x, dtype):
    return dvm.tensor(np.asarray(x, np.float32), dtype)


# ---- in and out ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["float64", "float32", "float16", "int64", "uint8", "bool"])
def test_numbers_become_bfloat16_rounded_once(kind):
    x = np.random.default_rng(1).standard_normal(2000) * 100
    tie = 1 + 2.0 ** -8
    x[:6] = [tie + 2.0 ** -40, tie - 2.0 ** -40, 3.4e38, -1e300, np.nan, -0.0]
    x = np.abs(np.nan_to_num(x)).astype(kind) if kind in ("int64", "uint8", "bool") else x.astype(kind)
    assert same(dvm.convert_from_bf16(dvm.convert_to_bf16(x)), rounded(x, "bfloat16"))
    assert same(dvm.tensor(x, "bfloat16").numpy(), rounded(x, "bfloat16"))
    assert same(dvm.tensor(x).astype("bfloat16").numpy(), rounded(x, "bfloat16"))


def test_bits_go_in_and_out_unchanged():
    x = dvm.tensor(ALL, dvm.bfloat16)
    assert x.dtype == "bf16" and x.bits().base is not None or x.bits() is ALL
    assert np.array_equal(x.bits(), ALL) and same(x.numpy(), widen(ALL, "bfloat16"))
    assert np.array_equal(dvm.convert_to_bf16(widen(ALL, "bfloat16")), np.where(np.isnan(widen(ALL, "bfloat16")), 0x7FC0, ALL))
    assert dvm.convert_to_bf16(1.5).shape == () and float(dvm.convert_from_bf16(np.uint16(0x3FC0))) == 1.5


def test_a_tensor_of_halves_reads_like_numbers():
    x = dvm.tensor([[1.5, -2.0], [0.25, 3.0]], dvm.bfloat16)
    assert repr(x) == "dvm.tensor([[ 1.5 , -2.  ],\n            [ 0.25,  3.  ]], bf16[2,2])" and str(x) == "[[ 1.5  -2.  ]\n [ 0.25  3.  ]]"
    assert x.tolist() == [[1.5, -2.0], [0.25, 3.0]] and x.sum().item() == 2.75 and float(x[0, 0]) == 1.5
    assert x.numpy().dtype == np.float32 and np.asarray(x).dtype == np.float32
    assert x.to(dvm.float16).dtype is dvm.float16 and x.to("float32").numpy().dtype == np.float32
    assert dvm.tensor(x, "float16").numpy().dtype == np.float16


def test_arrays_and_tensors_of_frameworks_that_have_bfloat16():
    """MindSpore adds a dtype of that name to NumPy; so does ml_dtypes."""
    ms = pytest.importorskip("mindspore")
    given = ms.Tensor([1.5, -2.0, 3.0], ms.bfloat16)
    for data in (given, given.asnumpy()):
        assert dvm.tensor(data).dtype is dvm.bfloat16 and dvm.tensor(data).tolist() == [1.5, -2.0, 3.0]
        assert dvm.tensor(data, "float32").tolist() == [1.5, -2.0, 3.0] and dvm.tensor(data, "float32").dtype == "float32"
        assert np.array_equal(dvm.convert_to_bf16(dvm.tensor(data).numpy()), [0x3FC0, 0xC000, 0x4040])


def test_the_agent_shows_halves_as_numbers():
    bits = bits_of(rounded([1.0, 0.1, np.inf], "bfloat16"), "bfloat16")
    assert values.texts(bits, values.BFLOAT16, 0, 3) == ["1.0", "0.100097656", "Inf"]
    assert values.texts(np.float16([1.0, 0.1]), 2, 0, 2) == ["1.0", "0.1"]


# ---- ops -----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 5), (40, 100), (3, 0, 2)])
def test_arithmetic_is_rounded_op_by_op(shape, dtype):
    rng = np.random.default_rng(len(shape))
    a, b = (rounded(rng.standard_normal(shape), dtype) for _ in range(2))
    x, y = of(a, dtype), of(b, dtype)
    want = rounded(rounded(rounded(a * b, dtype) + a, dtype) / rounded(np.abs(b) + 1, dtype), dtype)
    assert same((x * y + x).__truediv__(abs(y) + 1).numpy(), want)
    assert same((x * 3).numpy(), rounded(a * 3, dtype)) and same((0.1 - x).numpy(), rounded(rounded(0.1, dtype) - a, dtype))
    assert ((x < y).numpy() == (a < b)).all() and ((x == x).numpy()).all()
    assert same((x < y).where(x, y).numpy(), np.where(a < b, a, b))


@pytest.mark.parametrize("dtype", HALVES)
def test_views_and_movement_carry_bits(dtype):
    bits = samples(dtype, 6 * 8, 3).reshape(6, 8)
    given = dvm.tensor(bits.view(np.float16) if dtype == "float16" else bits, dtype)

    def found(t):
        memory = t.bits() if dtype == "bfloat16" else t.numpy().view(np.uint16)
        return np.asarray(memory)

    assert np.array_equal(found(given.T.copy()), bits.T)
    assert np.array_equal(found(given[1:5:2, ::-1].copy()), bits[1:5:2, ::-1])
    assert np.array_equal(found(given[[5, 0, 5]]), bits[[5, 0, 5]])
    assert np.array_equal(found(given.reshape(3, 16).swapaxes(0, 1).copy()), bits.reshape(3, 16).T)
    assert np.array_equal(found(given[:1].broadcast_to((4, 8)).copy()), np.repeat(bits[:1], 4, 0))


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_reductions_round_once(axis, dtype):
    a = rounded(np.random.default_rng(0).standard_normal((60, 700)) + 0.5, dtype)
    x = of(a, dtype)
    for name in ("sum", "mean", "max", "min"):
        got = getattr(x, name)(axis)
        assert got.dtype == dtype
        want = getattr(a, name)(axis)
        np.testing.assert_allclose(got.numpy().astype(np.float64), want, rtol=0.51 * EPS[dtype], atol=1e-3 * EPS[dtype])


@pytest.mark.parametrize("dtype", HALVES)
def test_products_are_summed_in_float32(dtype):
    rng = np.random.default_rng(0)
    a, b = rounded(rng.standard_normal((2, 30, 200)), dtype), rounded(rng.standard_normal((200, 17)), dtype)
    got = of(a, dtype) @ of(b, dtype)
    np.testing.assert_allclose(got.numpy().astype(np.float64), a @ b, rtol=0.51 * EPS[dtype], atol=1e-4)
    assert got.dtype == dtype


@pytest.mark.parametrize("dtype", HALVES)
def test_softmax_rounds_once(dtype):
    a = rounded(np.random.default_rng(0).standard_normal((5, 300)) * 4, dtype)
    e = np.exp(a - a.max(-1, keepdims=True))
    want = e / e.sum(-1, keepdims=True)
    got = of(a, dtype).softmax()
    assert got.dtype == dtype
    np.testing.assert_allclose(got.numpy().astype(np.float64), want, rtol=0.51 * EPS[dtype], atol=2.0 ** -25)


def test_numbers_past_the_largest_half_are_infinite_and_small_ones_are_denormal():
    x = dvm.tensor([60000.0, -60000.0, 6e-8, 3e-5], "float16")
    assert (x + x).tolist()[:2] == [np.inf, -np.inf] and (x * 2).tolist()[2] == 2.0 ** -23
    assert dvm.tensor([3e38], "bfloat16").__mul__(2).item() == np.inf
    assert str(dvm.tensor([np.nan], "bfloat16") + 1) == "[nan]"


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "int64"])
def test_functions_of_integers_are_numpys(dtype):
    """8 bits become float16, more float64; a quotient is float64; what has an integer meaning stays."""
    a = np.array([1, 0, 1, 3]).astype(dtype)
    x = dvm.tensor(a)
    for name in ("exp", "sqrt", "sin", "tanh"):
        want = getattr(np, name)(a)
        got = getattr(x, name)()
        assert got.dtype == str(want.dtype)
        np.testing.assert_allclose(got.numpy().astype(np.float64), want.astype(np.float64), rtol=1e-3 if want.itemsize == 2 else 1e-14)
    assert (x / 2).dtype == "float64" and (x / 2).tolist() == (a / 2).tolist() and (2 / dvm.tensor(a[:1])).tolist() == [2.0]
    assert (x / x.maximum(1)).tolist() == (a / np.maximum(a, 1)).tolist()
    assert x.floor().dtype == dtype and x.abs().tolist() == np.abs(a).tolist() and x.isfinite().tolist() == [True] * 4
    assert (x @ x).tolist() == (a @ a).tolist() and (x @ x).dtype == dtype


# ---- kernels and files ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", HALVES)
def test_a_kernel_of_halves(dtype):
    @dvm.kernel
    def kernel(k, x, y):
        a, b = k.load(x, dtype), k.load(y, dtype)
        s = k.add(k.mul(a, 2.0), b)
        return k.store(s), k.store(k.sum(k.cast(s, "float32"), [1], True)), k.store(k.cast(s, "float32")), k.store(k.greater(s, 0.0))

    rng = np.random.default_rng(0)
    a, b = (rounded(rng.standard_normal((9, 40)), dtype) for _ in range(2))
    given = [x.astype(np.float16) if dtype == "float16" else dvm.convert_to_bf16(x) for x in (a, b)]
    s, total, wide, above = kernel(*given)
    want = rounded(rounded(a * 2, dtype) + b, dtype)
    assert s.dtype == given[0].dtype and same(widen(s.view(np.uint16), dtype), want) and same(wide, want)
    assert np.array_equal(above, want > 0)
    np.testing.assert_allclose(total, want.sum(1, keepdims=True), rtol=1e-5, atol=1e-5)
    assert same(kernel(dvm.tensor(given[0], dtype), given[1])[2], want)  # our own array as an argument
    with pytest.raises(dvm.DtypeError, match=f"declared {dtype}, called with float32") as error:
        kernel(a.astype(np.float32), b)
    assert ("convert_to_bf16" in str(error.value)) == (dtype == "bfloat16")


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("exponent", [3, -2, 0.7, 1])
def test_a_power_in_a_kernel_rounds_once(exponent, dtype):
    a = np.abs(rounded(np.random.default_rng(0).standard_normal(200), dtype)) + 0.25
    a = rounded(a, dtype)
    given = a.astype(np.float16) if dtype == "float16" else dvm.convert_to_bf16(a)
    for call, want in ((dvm.kernel(lambda k, x: k.store(k.pow(k.load(x, dtype), exponent))), a ** exponent),
                       (dvm.kernel(lambda k, x: k.store(k.pow(2.5, k.load(x, dtype)))), 2.5 ** a)):
        np.testing.assert_allclose(widen(call(given).view(np.uint16), dtype), want, rtol=0.501 * EPS[dtype])


@pytest.mark.parametrize("dtype", HALVES)
def test_a_kernel_writes_into_a_given_array(dtype):
    k = dvm.Kernel()
    x = k.load([4], dtype)
    out = k.store(k.exp(x))
    bits = bits_of(np.array([0.0, 1, 2, -1]), dtype)
    target = np.zeros(4, np.float16 if dtype == "float16" else np.uint16)
    k.input(x, bits.view(target.dtype))
    k.set_output(out, target)
    k.run()
    assert same(widen(target.view(np.uint16), dtype), rounded(np.exp([0.0, 1, 2, -1]), dtype))


@pytest.mark.parametrize("dtype", HALVES)
def test_a_program_of_halves_survives_the_file(dtype):
    @dvm.kernel
    def kernel(k, x):
        return k.store(k.exp(k.mul(k.load(x, dtype), 0.3)))

    bits = bits_of(rounded(np.linspace(-3, 3, 24).reshape(4, 6), dtype), dtype)
    given = bits.view(np.float16) if dtype == "float16" else bits
    want = kernel(given)
    program = dvm.programs()[-1]
    (got,) = dvm.msbc.load(dvm.msbc.dump(program)).run([given])
    assert got.dtype == want.dtype and got.tobytes() == want.tobytes()
    (baked,) = dvm.msbc.load(dvm.msbc.dump(program, constants={0: given})).run([])
    assert baked.tobytes() == want.tobytes()
    assert dvm.dtypes.find(dtype).short in dvm.msbc.disassemble(dvm.msbc.dump(program))
