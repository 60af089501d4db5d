"""Tensors too large for another of their size: looked at in parts, reduced block by block, never slow where nobody asked."""
# ruff: noqa: F811, F841 - fixtures are named as what they are imported as; variables are there to be looked at
import resource
import threading
import types

import numpy as np
import pytest
from agent_harness import Running, adapter  # noqa: F401

import dvm_core as dvm
from dvm_core.agent import bounds, large, lookup, values
from dvm_core.agent.blocks import blocks, in_memory_order
from dvm_core.agent.evaluate import Refused, evaluate
from dvm_core.agent.tensors import Tensor
from dvm_core.bf16 import convert_to_bf16

random = np.random.default_rng(3)
H = random.standard_normal((8, 30, 7)).astype(np.float32)
W = random.standard_normal((8, 30, 7)).astype(np.float32)


@pytest.mark.parametrize("array", [H, H.T, H[:, ::2], H[::-1], np.float32(3) * np.ones(()), H[:0], np.broadcast_to(H[0], (5, 30, 7))],
                         ids=["plain", "turned", "strided", "backwards", "scalar", "empty", "broadcast"])
@pytest.mark.parametrize("most", [1, 5, 7, 64, 10_000])
def test_blocks_are_the_elements_in_index_order(array, most):
    for by_rows in (False, True):
        found = list(blocks(array, most, by_rows))
        assert all(0 < part.size <= max(most, 1) for _, part in found)
        assert [at for at, _ in found] == list(np.cumsum([0, *(part.size for _, part in found)])[:-1])
        np.testing.assert_array_equal(np.concatenate([part for _, part in found]) if found else [], array.reshape(-1))
    np.testing.assert_array_equal(np.sort(in_memory_order(array), axis=None), np.sort(array, axis=None))


def test_a_transposed_tensor_lies_side_by_side_in_memory_order():
    assert in_memory_order(H.transpose(1, 2, 0)).flags.c_contiguous


def names_of(**arrays):
    """Names of a stop with these tensors, all of which are large."""
    tensors = [Tensor(name, code or values.code_of(array), array.shape, lambda a=array: a) for name, (array, code) in arrays.items()]
    view = types.SimpleNamespace(tensors=lambda: tensors, find=lambda text: None, python=None)
    return lookup.Names(view, None)


@pytest.fixture
def small_bound(monkeypatch):
    for module in (bounds, large, lookup):
        monkeypatch.setattr(module, "MOST_ELEMENTS", 1000)
    monkeypatch.setattr(large, "blocks", lambda array, by_rows: blocks(array, 100, by_rows))


NAMES = {"h": (H, 0), "w": (W, 0), "turned": (H.T, 0), "b": (convert_to_bf16(H), values.BFLOAT16), "i": (H.astype(np.int32), 0)}


@pytest.mark.parametrize("expression", [
    "abs(h).max()", "h.abs().min()", "np.max(np.abs(h))", "(h * w).sum()", "(h - w).std()", "(h * 2 + 1).mean()", "(h > 0.5).any()",
    "np.all(h < 100)", "count_nonzero(h > w)", "(h ** 2).var()", "np.sqrt(h * h).max()", "turned.std()", "abs(turned).max()", "b.max()",
    "abs(b).mean()", "(b - h).std()", "i.sum()", "(i * 2).max()", "norm(h)", "h[1:, :, ::2].std()", "(h[1:] - w[:-1]).max()", "(-h).min()",
    "np.where(h > 0, h, 0).sum()", "isnan(h).any()", "(h @ h.T).shape if 0 else h.max()", "maximum(h, w).mean()"])
def test_reductions_are_numpys(small_bound, expression):
    arrays = {name: values.numbers(array, code or values.code_of(array)) for name, (array, code) in NAMES.items()}
    functions = {"np": np, "abs": np.abs, "count_nonzero": np.count_nonzero, "norm": np.linalg.norm, "isnan": np.isnan,
                 "maximum": np.maximum}
    plain = expression.replace("h.abs()", "abs(h)")
    expected = eval(plain, {**functions, **arrays})
    np.testing.assert_allclose(evaluate(expression, names_of(**NAMES)), expected, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("expression, text", [
    ("abs(h)", "`abs(h)` would have 1,680 elements"), ("h * 2", "would have 1,680 elements"), ("-h", "would have 1,680 elements"),
    ("h == w", "would have 1,680 elements"), ("h.sort()", ""), ("np.sort(h)", "1,680"), ("h.std(axis=0)", "1,680"),
    ("(h.T * w).max()", "1,680"),
    ("b", "decoded here: take a part"), ("b * 2", "take a part"), ("turned.reshape(1680)", "1,680"), ("h.flatten()", "1,680"),
    ("(h + w[:, :, :3]).max()", "of shapes"), ("median(h)", "1,680"),
])
def test_what_would_be_made_as_large_is_refused(small_bound, expression, text):
    with pytest.raises(Refused, match=None) as refused:
        evaluate(expression, names_of(**NAMES))
    assert text in str(refused.value)


@pytest.mark.parametrize("expression", ["h", "h[0, :, 3]", "h[2:4]", "h.T[3, 1]", "h.reshape(-1)[5:9]", "h.max()", "h.shape", "len(h)",
                                        "h.size",
                                        "h.argmax()", "b[1, 2]", "b[0, :3, ::2].max()", "h.swapaxes(0, 1)[3]", "turned[0].std()"])
def test_parts_and_looks_are_free(small_bound, expression):
    arrays = {name: values.numbers(array, code or values.code_of(array)) for name, (array, code) in NAMES.items()}
    np.testing.assert_array_equal(evaluate(expression, names_of(**NAMES)), eval(expression, {**arrays}))


def test_a_gigabyte_is_listed_hovered_sliced_and_paged_without_being_read(adapter):
    """Memory is reserved and untouched: reading all of it would show in the size of the process."""
    arrived, go = threading.Event(), threading.Event()

    def body(x):
        y = x + 1
        huge = ms.Tensor.from_numpy(reserved)
        arrived.set(), go.wait()
        return y

    ms = pytest.importorskip("mindspore")
    reserved = np.zeros((1 << 14, 1 << 14), np.float32)
    program = Running(lambda: dvm.jit(body)(ms.Tensor(np.ones(3, np.float32))).asnumpy())
    arrived.wait(20)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    adapter.request("pythonStop", thread=program.thread.ident)
    huge = next(t for t in adapter.request("tensors")["tensors"] if t["name"] == "huge")
    assert (huge["bytes"], huge["computed"], "stats" in huge) == (1 << 30, True, False)
    hovered = adapter.request("evaluate", expression="huge")
    assert "stats" not in hovered and hovered["summary"].startswith("f32[16384,16384]")
    assert adapter.request("evaluate", expression="huge[5, :3].max()")["result"] == "0.0"
    assert len(adapter.request("elements", ref=huge["ref"], start=1 << 27, count=100)["values"]) == 100
    part = adapter.request("tensor", ref=huge["ref"], slice="3, 10:20")
    assert (part["shape"], part["stats"]["count"]) == ([10], 10)
    whole = adapter.request("tensor", ref=huge["ref"], maxBytes=1 << 20, slice="0:2000")
    assert whole["placeholder"] and "ask for a slice" in whole["reason"]
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    assert grown < 300, f"{grown} MiB were read or made"
    go.set()
    program.join()
