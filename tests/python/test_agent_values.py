"""Tensor values as the wire carries them: texts, bytes in index order, slices, summaries, and what a numeric check says."""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from dvm_core import _core
from dvm_core.agent import values
from dvm_core.agent.explain import explain
from dvm_core.agent.tensors import References, Tensor, listed
from dvm_core.dtypes import TABLE

BF16 = values.BFLOAT16


def tensor(name, array, code=None):
    return Tensor(name, values.code_of(array) if code is None else code, array.shape, lambda: array)


def views():
    """Arrays with any strides: sliced, reversed, transposed."""
    base = npst.arrays(np.float32, npst.array_shapes(min_dims=1, max_dims=4, max_side=5), elements=st.floats(-9, 9, width=32))
    return base.flatmap(lambda a: st.sampled_from([a, a.T, a[::-1], a[..., ::2], a[:1], np.broadcast_to(a, (2, *a.shape))]))


@given(views(), st.integers(0, 40), st.integers(0, 200))
def test_bytes_are_in_index_order_whatever_the_strides(array, offset, count):
    whole = np.ascontiguousarray(array).tobytes()
    assert values.contiguous(array, offset, count) == whole[offset:offset + count]


@given(views(), st.integers(-2, 40), st.integers(0, 40))
def test_texts_are_a_page_of_the_elements(array, start, count):
    flat = [str(v) for v in np.ascontiguousarray(array).reshape(-1)]
    start = max(0, start)
    assert values.texts(array, 1, start, count) == flat[start:start + count]


def test_a_scalar_has_one_element():
    array = np.array(2.5, np.float32)
    assert values.texts(array, 1, 0, 10) == ["2.5"] and values.contiguous(array, 0, 99) == array.tobytes()
    assert values.summary(1, (), None, array) == "f32[]  2.5"


def test_texts_of_every_dtype():
    assert values.texts(np.array([np.nan, np.inf, -np.inf, 0.1], np.float32), 1, 0, 4) == ["NaN", "Inf", "-Inf", "0.1"]
    assert values.texts(np.array([True, False]), 5, 0, 2) == ["True", "False"]
    assert values.texts(np.array([-128, 127], np.int8), 6, 0, 2) == ["-128", "127"]
    bits = np.array([0x3f80, 0xc000, 0x7fc0, 0x7f80], np.uint16)  # 1, -2, NaN, infinity
    assert values.texts(bits, BF16, 0, 4) == ["1.0", "-2.0", "NaN", "Inf"]


@pytest.mark.parametrize("entry", TABLE, ids=str)
def test_every_dtype_is_described(entry):
    array = np.zeros((2, 3), entry.numpy)
    told = tensor("t", array, entry.code).describe(with_stats=True)
    assert (told["dtype"], told["bytes"], told["strides"], told["computed"]) == (entry.name, 6 * entry.itemsize, [3, 1], True)
    assert told["summary"].startswith(f"{entry.short}[2,3]")
    assert told["stats"]["count"] == 6 and told["stats"]["zero"] == 6


def test_statistics_of_bfloat16_are_of_its_numbers():
    stats = values.statistics(np.array([0x3f80, 0xc000], np.uint16), BF16)
    assert (stats["min"], stats["max"], stats["mean"]) == (-2, 1, -0.5)


def test_an_empty_tensor_has_counts_and_no_extremes():
    told = tensor("t", np.zeros((0, 3), np.float32)).describe(with_stats=True)
    assert told["summary"] == "f32[0,3]  no elements" and told["stats"]["count"] == 0 and "min" not in told["stats"]


def test_a_summary_counts_what_is_not_finite():
    array = np.array([1, 2, np.nan, np.inf, -np.inf], np.float32)
    assert tensor("t", array).describe(True)["summary"].endswith("NaN 1  +Inf 1  -Inf 1")


def test_not_in_memory_says_why():
    told = Tensor("h", 1, (2, 3), lambda: None, reason="not yet computed").describe(True)
    assert (told["computed"], told["reason"], told["strides"], told["bytes"]) == (False, "not yet computed", None, 24)


@pytest.mark.parametrize("text, expected", [
    ("0", np.s_[0]), ("[0, :, 3:5]", np.s_[0, :, 3:5]), ("..., -1", np.s_[..., -1]),
    ("::2", np.s_[::2]), ("", np.s_[...]), ("[]", np.s_[...]),
])
def test_slices(text, expected):
    array = np.arange(120).reshape(4, 5, 6)
    np.testing.assert_array_equal(values.sliced(array, text), array[expected])


@pytest.mark.parametrize("text", ["x", "0.5", "f()", "0; 1", "[0", "None", "True", "__import__('os')", "9", "0, 0, 0, 0", "True or 1"])
def test_bad_slices_are_refused(text):
    with pytest.raises(values.BadSlice):
        values.sliced(np.arange(120).reshape(4, 5, 6), text)


@given(st.text(max_size=20))
def test_any_text_as_a_slice_gives_a_view_or_a_refusal(text):
    try:
        values.sliced(np.zeros((2, 3)), text)
    except values.BadSlice:
        pass


def test_references_are_never_reused():
    references = References()
    first = references.add(tensor("a", np.zeros(1)))
    references.clear()
    assert references.add(tensor("b", np.zeros(1))) > first


def test_a_large_list_leaves_statistics_out(monkeypatch):
    from dvm_core.agent import tensors
    monkeypatch.setattr(tensors, "LARGE_BYTES", 100)
    small, large = listed(References(), [tensor("a", np.zeros(4, np.float32)), tensor("b", np.zeros(400, np.float32))])
    assert "stats" in small and "stats" not in large and large["summary"] == "f32[400]"


def op(name):
    return next((code, n) for n, code, *_ in _core.OPS if n == name)


def test_the_first_bad_element_of_an_elementwise_op_names_its_operands():
    a, b = np.array([[1, 2], [0, 4]], np.float32), np.array([3, 0], np.float32)
    with np.errstate(all="ignore"):
        r = a / b
    text = explain("inf", *op("DIV"), tensor("r", r), [tensor("a", a), tensor("b", b)])
    assert text == "DIV made 2 infinity in r, f32[2,2], 4 elements; the first at [0, 1]: Inf from a = 2.0, b = 0.0"


def test_of_a_matmul_its_row_and_column():
    a, b = np.ones((3, 4), np.float32), np.ones((4, 5), np.float32)
    a[2, 1] = np.nan
    text = explain("nan", *op("MATMUL"), tensor("r", a @ b), [tensor("a", a), tensor("b", b)], (0, 0))
    assert text.endswith("the first at [2, 0]: NaN from row 2 of a (min 1, max 1, 1 NaN), column 0 of b (min 1, max 1)")
    text = explain("nan", *op("MATMUL"), tensor("r", a @ b), [tensor("a", a.T), tensor("b", b.T)], (1, 1))
    assert "column 2 of a (min 1, max 1, 1 NaN), row 0 of b (min 1, max 1)" in text


@pytest.mark.parametrize("turned", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_rows_and_columns_of_a_matmul_are_those_of_the_operand_as_it_lies(turned):
    a, b = np.ones((3, 4), np.float32), np.ones((4, 5), np.float32)
    b[1, 2] = np.nan
    operands = [tensor(name, array.T if flag else array) for name, array, flag in zip("ab", (a, b), turned, strict=True)]
    text = explain("nan", *op("MATMUL"), tensor("r", a @ b), operands, turned)
    line, other = "row" if turned[1] else "column", "column" if turned[0] else "row"
    assert text.endswith(f"the first at [0, 2]: NaN from {other} 0 of a (min 1, max 1), {line} 2 of b (min 1, max 1, 1 NaN)")


def test_of_a_batched_matmul_its_batch():
    a, b = np.ones((2, 3, 4), np.float32), np.ones((1, 4, 5), np.float32)
    a[1, 2, 0] = np.nan
    text = explain("nan", *op("MATMUL"), tensor("r", a @ b), [tensor("a", a), tensor("b", b)], (0, 0))
    assert "the first at [1, 2, 0]" in text and "row 2 of a (min 1, max 1, 1 NaN)" in text


@pytest.mark.parametrize("keep", [False, True])
def test_of_a_reduction_what_it_went_over(keep):
    a = np.ones((2, 3, 4), np.float32)
    a[1, 2, 3] = np.inf
    r = a.sum(axis=(1, 2), keepdims=keep)
    text = explain("inf", *op("SUM"), tensor("r", r), [tensor("a", a)], (int(keep), 1, 2))
    assert text.endswith("from 12 elements of a (min 1, max 1, 1 +Inf)")  # the extremes are of what is finite


def test_without_values_the_op_and_the_name_remain():
    assert explain("nan", *op("EXP"), Tensor("h", 1, (2,), lambda: None), []) == "EXP made NaN in h"
