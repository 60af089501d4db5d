"""Expressions at a tensor line: what is computed, and that nothing of the program can be reached or run."""
import tracemalloc

import numpy as np
import pytest
from dvm_wire import filters
from dvm_wire.filters import names_in
from hypothesis import given
from hypothesis import strategies as st

from dvm_core.agent.bounds import MOST_ELEMENTS
from dvm_core.agent.evaluate import FUNCTIONS, Refused, evaluate, is_plain

H = np.arange(24, dtype=np.float32).reshape(2, 3, 4) - 10
NAMES = {"h": H, "w": np.eye(4, dtype=np.float32), "i": 1, "mask": H > 0, "rate": 0.5, "name": "relu", "config": {"k": 2}}


@pytest.mark.parametrize("expression, expected", [
    ("h", H),
    ("h[0, :, 3]", H[0, :, 3]),
    ("h[..., -1]", H[..., -1]),
    ("h[i, 1:, None]", H[1, 1:, None]),
    ("h[mask]", H[H > 0]),
    ("abs(h).max()", 13),
    ("np.abs(h).max()", 13),
    ("ops.abs(h).max(axis=0)", np.abs(H).max(axis=0)),
    ("h @ w", H @ np.eye(4)),
    ("-h + 2 * h ** 2", -H + 2 * H ** 2),
    ("h.mean()", H.mean()),
    ("h.std(0)", H.std(0)),
    ("h.T.shape", (4, 3, 2)),
    ("h.sum() > 0 and rate < 1", True),
    ("h.asnumpy().size", 24),
    ("len(h)", 2),
    ("isnan(h).any()", False),
    ("(h > 3).sum()", int((H > 3).sum())),
    ("0 < i < 2", True),
    ("not i", False),
    ("h.max() if i == 1 else h.min()", 13),
    ("max(i, 3)", 3),
    ("max(h)", 13),
    ("config['k'] * rate", 1.0),
    ("name.upper()", "RELU"),
    ("sigmoid(h)[0, 0, 0]", 1 / (1 + np.exp(10.0))),
    ("norm(h)", np.linalg.norm(H)),
    ("h.permute(2, 0, 1).shape", (4, 2, 3)),
    ("2 ** 10", 1024),
])
def test_value(expression, expected):
    value = evaluate(expression, NAMES)
    if isinstance(expected, str):
        assert value == expected
    else:
        np.testing.assert_allclose(value, expected, rtol=1e-6)


@pytest.mark.parametrize("expression", [
    "__import__('os').system('true')",
    "h.__class__",
    "h.tofile('/tmp/x')",
    "np.save('/tmp/x', h)",
    "np.load('/tmp/x')",
    "np.add(h, h, out=h)",
    "np.maximum(h, h, out=h)",
    "h.fill(0)",
    "h.sort()",
    "[x for x in h]",
    "(lambda: 1)()",
    "h.base",
    "h.data",
    "(h := 3)",
    "f'{h}'",
    "open('/etc/passwd')",
    "abs(*h)",
    "max(**config)",
    "name.format(h)",
    "h.dtype.type",
    "np.os",
    "np.linalg.inv(w)",
    "x = 3",
    "",
    "h[",
    "unknown + 1",
])
def test_refused(expression):
    before = H.copy()
    with pytest.raises(Refused) as caught:
        evaluate(expression, NAMES)
    assert str(caught.value)
    np.testing.assert_array_equal(H, before)


@pytest.mark.parametrize("expression", [
    "9 ** 9 ** 9", "'a' * 10 ** 9", "[0] * 10 ** 9", "big[:, None] * big", "np.maximum(big[:, None], big)", "big[:, None] @ big[None]",
    "np.matmul(big[:, None], big[None])", "big[:, None] < big", "big[:, None].clip(big, 1)", "big[:, None].dot(big[None])",
    "np.where(big[:, None] > 0, big, 0)", "many.tolist()", "sorted(many)",
    "np.maximum([big[:, None]], big)", "square[index]", "square[:, index]", "square[..., index]",
    "square[index[:, None], many]", "np.stack([many, many, many, many, many, many, many, many])", "np.concatenate([" + "many, " * 8 + "])",
    "np.quantile(square, many, axis=0)", "np.diff(index, 10 ** 9)", "np.diff(index, n=10 ** 9)", "index.astype('S99999999')",
    "np.sum(index, dtype='O')", "h.astype('U9999999')", "((9 ** 999) ** 999) ** 999", "np.square(" * 9 + "2 ** 2000" + ")" * 9,
    "(2 ** 4000) * (2 ** 4000) * (2 ** 4000)", "'%99999999d' % 5", "name % 5", "b'%99999999d' % 5",
])
def test_too_large_is_refused_before_it_is_computed(expression):
    names = {"big": np.zeros(MOST_ELEMENTS // 1000, np.float32), "many": np.broadcast_to(np.int64(0), (MOST_ELEMENTS // 7,)), "h": H,
             "index": np.zeros(MOST_ELEMENTS // 1000, np.int64), "square": np.zeros((1024, 1024), np.float32), "name": "%99999999d"}
    tracemalloc.start()
    try:
        with pytest.raises(Refused):
            evaluate(expression, names)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("expression, shape", [
    ("square[index[:3]]", (3, 1024)), ("square[mask]", (5,)), ("square[[1, 2], None, :4]", (2, 1, 4)),
    ("square[..., index[:2]]", (1024, 2)),
    ("square[1, index[:2]]", (2,)), ("square[index[:2], index[:2]]", (2,)), ("square[mask[0]]", (5, 1024)),
    ("square.transpose((1, 0))", (1024, 1024)),
    ("np.quantile(square, [0.1, 0.9])", (2,)), ("np.concatenate([square, square], axis=1)", (1024, 2048)),
    ("square.astype('float16')", (1024, 1024)),
    ("np.diff(square, 2, axis=0)", (1022, 1024)), ("square.reshape(2, 512, 1024)", (2, 512, 1024)), ("square.sum(axis=(0, 1))", ()),
    ("square[:2, :2] * [1, 2]", (2, 2)), ("5 % 3", ()), ("square % 3", (1024, 1024)), ("[1, 2] + [3]", (3,)),
])
def test_bounds_leave_what_is_small(expression, shape):
    mask = np.zeros((1024, 1024), bool)
    mask[0, :5] = True
    value = evaluate(expression, {"square": np.zeros((1024, 1024), np.float32), "index": np.zeros(9, np.int64), "mask": mask})
    assert np.shape(value) == shape


def test_unknown_name_lists_what_there_is():
    with pytest.raises(Refused, match=r"no tensor `k` here; there are config, h, i"):
        evaluate("k + 1", NAMES)


def test_truth_of_a_tensor_asks_for_any_or_all():
    with pytest.raises(Refused, match=r"shape \[2, 3, 4\] is neither true nor false; say .any\(\) or .all\(\)"):
        evaluate("h > 0 and True", NAMES)


def test_errors_are_told_in_their_own_words():
    with pytest.raises(Refused, match="IndexError: index 7 is out of bounds"):
        evaluate("h[7]", NAMES)


@given(st.text(max_size=40))
def test_any_text_gives_a_value_or_a_refusal(text):
    try:
        evaluate(text, NAMES)
    except Refused:
        pass


def test_names_in_an_expression():
    assert names_in("abs(h)[i] + w") == {"abs", "h", "i", "w"}
    assert names_in("h[") == set()


def test_the_adapter_knows_the_functions_that_conditions_may_call():
    assert filters.FUNCTIONS == set(FUNCTIONS)


def test_plain_values():
    assert is_plain({"a": [1, 2.5, "x", None]}) and is_plain(np.float32(1))
    assert not is_plain(object()) and not is_plain([object()]) and not is_plain(list(range(65))) and not is_plain({1: 2})


def test_a_gradient_that_is_not_here_is_told_with_those_that_are():
    with pytest.raises(Refused, match=r"there is no `grad\(h\)` here, nor another gradient"):
        evaluate("grad(h)", NAMES)
    with pytest.raises(Refused, match=r"there is no `grad\(h\)` here; there are grad\(w\)"):
        evaluate("grad(h) + 1", {**NAMES, "grad(w)": H})
