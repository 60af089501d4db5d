"""Tensors of dtypes that programs never have, as a stop shows them: each decoded as its own framework decodes it."""
# ruff: noqa: F811, F841 - fixtures are named as what they are imported as; variables are there to be looked at
import threading

import numpy as np
import pytest
from agent_harness import Running, adapter  # noqa: F401

import dvm_core as dvm
from dvm_core.agent import foreign, values

CODES = np.arange(256, dtype=np.uint8)


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_all_codes_of_eight_bit_floats_are_pytorchs_numbers(name):
    torch = pytest.importorskip("torch")
    theirs = torch.from_numpy(CODES.copy()).view(getattr(torch, name)).to(torch.float32).numpy()
    ours = values.numbers(CODES, foreign.CODES[name])
    np.testing.assert_array_equal(ours.view(np.uint32)[~np.isnan(ours)], theirs.view(np.uint32)[~np.isnan(theirs)])
    np.testing.assert_array_equal(np.isnan(ours), np.isnan(theirs))


def test_mindspore_writes_the_numbers_of_hifloat8_as_the_codes_they_are_read_from():
    ms = pytest.importorskip("mindspore")
    ours = values.numbers(CODES, foreign.CODES["hifloat8"])
    assert len(np.unique(ours[~np.isnan(ours)])) == 255  # 0x80 is NaN
    finite = np.isfinite(ours)
    from dvm_core.frontends import mindspore_compat as compat

    written = compat.bits(ms.Tensor(ours[finite], ms.hifloat8))
    np.testing.assert_array_equal(written, CODES[finite])


def test_two_integers_in_a_byte():
    bits = np.array([0x10, 0xF7, 0x8F], np.uint8)
    code = foreign.CODES["int4x2"]
    np.testing.assert_array_equal(values.numbers(bits, code), [[0, 1], [7, -1], [-1, -8]])
    assert values.texts(bits, code, 1, 2) == ["(7, -1)", "(-1, -8)"]
    stats = values.statistics(bits, code)
    assert (stats["count"], stats["min"], stats["max"], stats["mean"]) == (6, -8.0, 7.0, pytest.approx(-1 / 3))
    assert values.summary(code, (3,), stats).startswith("i4x2[3]  min -8  max 7")


@pytest.mark.parametrize("dtype", [np.int16, np.uint16, np.uint32, np.uint64])
def test_odd_integers(dtype):
    info = np.iinfo(dtype)
    array = np.array([[info.min, 3], [5, info.max]], dtype).T
    code = values.code_of(array)
    assert values.texts(array, code, 0, 4) == [str(info.min), "5", "3", str(info.max)]
    stats = values.statistics(array, code)
    assert (stats["count"], stats["min"], stats["max"]) == (4, float(info.min), float(info.max))
    assert values.summary(code, (2, 2), None).startswith(f"{dtype.__name__[0]}{8 * array.itemsize}[2,2]")


@pytest.mark.parametrize("dtype, short", [(np.complex64, "c64"), (np.complex128, "c128")])
def test_complex_numbers_have_counts_and_no_order(dtype, short):
    array = np.array([1 + 2j, 0, complex("nan+1j"), complex("inf")], dtype)
    code = values.code_of(array)
    assert values.statistics(array, code) == {"count": 4, "finite": 2, "zero": 1, "nan": 1}
    assert values.texts(array, code, 0, 1) == ["(1+2j)"]
    assert values.summary(code, (4,), values.statistics(array, code)) == f"{short}[4]  NaN 1"
    assert values.contiguous(array, 8, 8) == array.tobytes()[8:16]


@pytest.mark.parametrize("entry", foreign.TABLE, ids=lambda entry: entry.name)
def test_empty_and_single(entry):
    dtype = np.uint8 if entry.decode else entry.name
    for shape in ((0,), (3, 0), ()):
        array = np.ones(shape, dtype)
        stats = values.statistics(array, entry.code)
        assert "min" not in stats if not array.size else stats["count"] in (1, 2)
        assert len(values.texts(array, entry.code, 0, 9)) == array.size
        assert values.summary(entry.code, shape, stats, array).startswith(entry.short + "[")


def test_a_dtype_nobody_knows_is_named_and_has_no_statistics():
    array = np.zeros(2, "m8[s]")
    assert values.code_of(array) == 0 and values.statistics(array, 0) == {}
    assert values.summary(0, (2,), {}, array) == "timedelta64[s][2]"


def test_a_stop_lists_tensors_of_every_dtype_beside_the_captured_ones(adapter):
    ms = pytest.importorskip("mindspore")
    arrived, go = threading.Event(), threading.Event()
    numbers = np.array([[1, 2, 3], [4, 5, 6]])
    names = {"complex64": "c64", "complex128": "c128", "int16": "i16", "uint16": "u16", "uint32": "u32", "uint64": "u64",
             "bfloat16": "bf16", "float16": "f16", "bool_": "bool", "float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2", "hifloat8": "hif8"}

    def beside(x):
        h = x * 2
        many = {name: ms.Tensor(numbers, getattr(ms, name)) for name in names}
        packed = ms.Tensor(np.array([0x21, -1], np.int8), ms.qint4x2)
        complex64, complex128, int16, uint16, uint32, uint64 = (many[name] for name in list(names)[:6])
        bfloat16, float16, bool_, float8_e4m3fn, float8_e5m2, hifloat8 = (many[name] for name in list(names)[6:])
        arrived.set(), go.wait()
        return h + 1

    program = Running(lambda: dvm.jit(beside)(ms.Tensor(np.ones((2, 3), np.float32))).asnumpy())
    arrived.wait(20)
    adapter.request("pythonStop", thread=program.thread.ident)
    listed = {t["name"]: t for t in adapter.request("tensors")["tensors"]}
    for name, short in names.items():
        told = listed[name]
        assert (told["dtype"], told["shape"], told["computed"]) == (name.rstrip("_"), [2, 3], True)
        assert told["summary"].startswith(f"{short}[2,3]"), told["summary"]
        texts = adapter.request("elements", ref=told["ref"], start=1, count=2)["values"]
        expected = {"c": ["(2+0j)", "(3+0j)"], "b": ["True", "True"]}.get(short[0] if short != "bf16" else "f")
        expected = expected or (["2.0", "3.0"] if "f" in short else ["2", "3"])
        assert texts == expected, name
    assert adapter.request("elements", ref=listed["packed"]["ref"], start=0, count=2)["values"] == ["(1, 2)", "(-1, -1)"]
    assert adapter.request("evaluate", expression="hifloat8.max() + 1")["result"] == "7.0"
    assert adapter.request("evaluate", expression="abs(complex64).max()")["result"] == "6.0"
    assert adapter.request("evaluate", expression="int16[1, :2]")["summary"].startswith("i16[2]  min 4  max 5")
    go.set()
    np.testing.assert_array_equal(program.join(), np.full((2, 3), 3, np.float32))
