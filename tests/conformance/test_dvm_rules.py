"""Dtype and argument rules: what DVM's release build computes wrongly without a word is an error with the rule and the line."""

import re

import numpy as np
import pytest
from dvm_kit import make, one

import dvm_core as dvm
from dvm_core.tester import Tester


def line_of(marker):
    with open(__file__, encoding="utf-8") as file:
        return next(number for number, line in enumerate(file, 1) if marker in line)


def refused(kind, text, call, line):
    with pytest.raises(kind) as caught:
        call()
    assert re.search(text, str(caught.value)), str(caught.value)
    assert (caught.value.file, caught.value.line) == (__file__, line), str(caught.value)


TWO = "add sub mul div maximum minimum equal not_equal greater greater_equal less less_equal pow logical_and logical_or".split()


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("name", TWO)
def test_nothing_is_promoted_between_two_tensors(name):
    k = dvm.Kernel("vector")
    a, b = k.load([3], "float32"), k.load([3], "int32")
    text = "operands are float32 and int32, and nothing is promoted"
    refused(dvm.DtypeError, text, lambda: getattr(k, name)(a, b), line_of("lambda: getattr(k, name)(a, b)"))


@pytest.mark.usefixtures("strict")
def test_nothing_is_promoted_elsewhere_either():
    k = dvm.Kernel("split")
    a, b, c = k.load([3, 3], "float32"), k.load([3, 3], "int32"), k.load([3, 3], "bool")
    for call in (
        lambda: k.select(c, a, b),
        lambda: k.concat([a, b], 0),
        lambda: k.matmul(a, b),
        lambda: k.matmul(a, a, False, False, b),
        lambda: k.concat_store([a, b], 0),
    ):
        with pytest.raises(dvm.DtypeError, match="float32 and int32"):
            call()


# op -> dtypes DVM has no such op for
REFUSED = {
    "sqrt": ["bool", "int32", "int64"],
    "exp": ["bool", "int32", "int64"],
    "log": ["int32"],
    "round": ["int32", "int64"],
    "floor": ["int32"],
    "ceil": ["int32"],
    "trunc": ["int32"],
    "isfinite": ["int32", "bool"],
    "abs": ["int64", "bool"],
    "reciprocal": ["int32", "int64"],
    "sum": ["int32", "int64", "bool", "float16", "bfloat16"],
    "max": ["int32", "int64", "bfloat16"],
    "min": ["int32", "int64", "bfloat16"],
    "element_any": ["bool", "int32", "float16"],
}


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("name, dtype", [(name, dtype) for name, dtypes in REFUSED.items() for dtype in dtypes])
def test_dtypes_an_op_does_not_take(name, dtype):
    k = dvm.Kernel("vector")
    x = k.load([3, 3], dtype)
    refused(
        dvm.DtypeError, rf"takes float32.*, got {dtype}; cast it first", lambda: getattr(k, name)(x), line_of("lambda: getattr(k, name)(x)")
    )


@pytest.mark.parametrize("name", ["mul", "div", "pow", "maximum", "minimum", "logical_and"])
def test_int64_has_only_sums_and_compares(name):
    k = dvm.Kernel("vector")
    x = k.load([3], "int64")
    with pytest.raises(dvm.DtypeError, match="got int64"):
        getattr(k, name)(x, x)
    (a, w), (b, v) = make((33,), "int64", -9, 9), make((33,), "int64", -9, 9, seed=1)
    one("vector", lambda t, p, q: [t.add(p, q), t.sub(p, q), t.sub(p, 3), t.sub(3, p), t.less(p, q)],
        [w + v, w - v, w - 3, 3 - w, w < v], a, b, dtypes=["int64"])  # fmt: skip


def test_a_negative_whole_power_of_integers():
    k = dvm.Kernel("vector")
    x = k.load([3], "int32")
    assert k.pow(x, 3).dtype() == "int32"
    with pytest.raises(dvm.DtypeError, match="got int32"):
        k.pow(x, -3)


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("number", [0.5, 2**31, -(2**31) - 1, float("nan"), float("inf")])
def test_a_number_int32_does_not_hold(number):
    k = dvm.Kernel("vector")
    x = k.load([3], "int32")
    refused(dvm.DtypeError, "does not fit a tensor of int32", lambda: k.add(x, number), line_of("lambda: k.add(x, number)"))
    with pytest.raises(dvm.DtypeError, match="does not fit a tensor of int32"):
        k.full(number, [3], "int32")


@pytest.mark.usefixtures("strict")
def test_a_number_given_at_the_call_is_held_to_the_same():
    @dvm.kernel
    def kernel(k, x, s):
        return k.store(k.add(k.load(x, "int32"), k.scalar(s)))  # at the call

    x = np.arange(3, dtype=np.int32)
    np.testing.assert_array_equal(kernel(x, 2), x + 2)
    refused(dvm.DtypeError, "Add: the number 2.5 does not fit a tensor of int32", lambda: kernel(x, 2.5), line_of("# at the call"))
    np.testing.assert_array_equal(kernel(x, -1.0), x - 1)


def test_indices_of_one_hot():
    k = dvm.Kernel("vector")
    for dtype in ("int64", "float32"):
        x = k.load([3], dtype)
        with pytest.raises(dvm.DtypeError, match=f"takes int32, got {dtype}"):
            k.one_hot(x, 5, -1, 1, 0, "float32")


def test_steps_of_a_strided_slice_and_kinds_of_bounds():
    k = dvm.Kernel("vector")
    with pytest.raises(dvm.ArgumentError, match="step must be 1 along every axis"):
        k.stridedslice_load([9], [0], [9], [2], "float32")
    with pytest.raises(dvm.ArgumentError, match="Unsupported slice_dim bound type"):
        k.slice_dim(k.load([9], "float32"), 0, 1.5, 3)


def test_what_is_bound_to_a_load():
    k = dvm.Kernel("vector")
    a, view = k.load([-1, 4], "float32"), k.view_load([2, 2], [1, 2], "float32")
    out = k.store(k.exp(a))
    for array, text in (
        (np.zeros((2, 4)), r"declared float32, called with float64\[2, 4\]"),
        (np.zeros((2, 4), np.int32), "declared float32, called with int32"),
        (np.zeros((2, 5), np.float32), r"declared \[-1, 4\], called with \[2, 5\]"),
        (np.zeros((4,), np.float32), r"called with \[4\]"),
    ):
        with pytest.raises(dvm.Error, match=text):
            k.input(a, array)
    with pytest.raises(dvm.ArgumentError, match="takes what a load gives"):
        k.input(out, np.zeros((2, 4), np.float32))
    with pytest.raises(dvm.ArgumentError, match="offset 3 is for a view_load"):
        k.input(a, np.zeros((2, 4), np.float32), 3)
    k.input(a, np.zeros((2, 4), np.float32)), k.input(view, np.zeros(5, np.float32), 2)
    k.store(view)
    with pytest.raises(dvm.ShapeError, match="reaches element 5, the array has 5"):
        k.run()


def test_outputs_given_must_fit():
    k = dvm.Kernel("vector")
    a = k.load([2, 3], "float32")
    out, gaps = k.store(k.exp(a)), k.view_store(a, [6, 2])
    k.input(a, np.zeros((2, 3), np.float32))
    with pytest.raises(dvm.ArgumentError, match="needs a contiguous array to write into: give it with set_output"):
        k.run()
    k.set_output(gaps, np.zeros(10, np.float32))
    with pytest.raises(dvm.ShapeError, match="reach element 10, the array has 10"):
        k.run()
    k.set_output(gaps, np.zeros(11, np.float32)), k.set_output(out, np.zeros((2, 3)))
    with pytest.raises(dvm.ShapeError, match=r"the output is float32\[2, 3\], the array given for it float64\[2, 3\]"):
        k.run()


def test_a_run_that_lacks_something_says_what():
    k = dvm.Kernel("vector")
    with pytest.raises(dvm.ArgumentError, match="has no store"):
        k.run()
    out = k.store(k.exp(k.load([3], "float32")))
    with pytest.raises(dvm.ArgumentError, match="1 loads have no array"):
        k.run()
    with pytest.raises(dvm.ArgumentError, match="no result yet"):
        k.output(out)
    t = Tester("vector")
    t.store(t.mul(t.load(np.ones(3, np.float32)), t.scalar()))
    with pytest.raises(dvm.ArgumentError, match="a ScalarRef has no value yet"):
        t.run()


def test_tensors_of_another_kernel():
    k, other = dvm.Kernel("vector"), dvm.Kernel("vector")
    x, y = k.load([3], "float32"), other.load([3], "float32")
    for call in (lambda: k.exp(y), lambda: k.add(x, y), lambda: k.store(y)):
        with pytest.raises(dvm.ArgumentError, match="is of another kernel"):
            call()
    k.reset()
    k.load([3], "float32")
    with pytest.raises(dvm.ArgumentError, match="before reset"):
        k.exp(x)


def test_numbers_that_must_be_whole():
    k = dvm.Kernel("split")
    whole = k.scalar("int32")
    with pytest.raises(dvm.DtypeError, match="the number 2.5 is no int32, as this ScalarRef was declared"):
        whole.update(2.5)
    with pytest.raises(dvm.ArgumentError, match="a ScalarRef takes a number, got 'x'"):
        whole.update("x")
    bound = k.scalar()
    x = k.load([9], "float32")
    k.store(k.slice_dim(x, 0, bound, 9))
    k.input(x, np.zeros(9, np.float32)), k.input(bound, 1.5)
    with pytest.raises(dvm.ArgumentError, match="bounds are whole numbers, got 1.5 and 9"):
        k.run()


def test_pieces_that_lose_or_invent_elements():
    for size, count in ((4, 2), (4, 4), (10, 1)):
        t = Tester("split")
        with pytest.raises(dvm.ShapeError, match=f"{count} pieces of {size} do not make an extent of 11"):
            t.store(t.split(t.load(np.zeros((2, 11), np.float32)), 1, size, count)[0])
            t.run()
    with pytest.raises(dvm.ArgumentError, match="at least one of each"):
        t.split(t.load(np.zeros(3, np.float32)), 0, 0, 3)


def test_strided_stores_that_meet_themselves():
    t = Tester("vector")
    t.set_output(t.view_store(t.load(np.ones((3, 4), np.float32)), [0, 1]), np.zeros(4, np.float32))
    with pytest.raises(dvm.ShapeError, match="put several elements in one place"):
        t.run()


def test_ranks_up_to_ten():
    x, w = make((1, 2, 1, 2, 1, 2, 1, 2, 1, 2))
    one("vector", lambda t, a: t.add(a, a), 2 * w, x)
    with pytest.raises(Exception, match="rank 11 is above 10"):
        one("vector", lambda t, a: t.exp(a), np.zeros([1] * 11), np.zeros([1] * 11, np.float32))


def test_rewrites_show_in_the_graph():
    t = Tester("vector")
    a = t.load([3], "float32")
    t.store(t.sub(a, 0.25)), t.store(t.sub(0.25, a)), t.store(t.reciprocal(a)), t.store(t.pow(2.0, a))
    t.store(t.pow(a, 0)), t.store(t.pow(a, 1)), t.store(t.logical_not(a))
    text = t.dump()
    for part in (
        "Add<-0.25>(%0",
        "Mul<-1.0>(%0",
        "Add<0.25>(%3",
        "ScalarDiv<1.0>(%0",
        "Mul<0.693147",
        "FullLike<1.0>",
        "Copy(%0",
        "Add<1.0>",
    ):
        assert part in text, part
