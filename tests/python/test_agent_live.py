"""Expressions that are watched while the program runs: each value against float64 NumPy, each fault with its part."""
# ruff: noqa: F811 - fixtures are named as what they are imported as
import base64
import re
import sys

import numpy as np
import pytest
from agent_harness import Refused, adapter  # noqa: F401 - the fixture among them
from agent_stop_kit import X, model, source  # noqa: F401 - the fixture among them

from dvm_core.agent import live
from dvm_core.agent.commands import CommandError

H = X.astype(np.float64) * 2
S = np.exp(H)
GRAD = S / X * S

VALUES = {
    "abs(h).max()": np.abs(H).max(), "h[0, :]": H[0], "h[-1, 1:3]": H[-1, 1:3], "h.std()": H.std(), "(h * 2 - 1).mean(axis=1)":
    (H * 2 - 1).mean(1), "np.percentile(s, 90)": np.percentile(S, 90), "h > 3": H > 3, "h.T[1:, ::2]": H.T[1:, ::2],
    "h.T @ h": H.T @ H, "grad(s).std()": GRAD.std(), "grad( s )[0]": GRAD[0], "torch.log(s).sum()": H.sum(), "h.argmax()": H.argmax(),
    "h.shape": np.array(H.shape), "len(h)": len(H), "s.max() if s.min() > 0 else -1": S.max(), "norm(h, axis=0)": np.linalg.norm(H, axis=0),
    "h[h > 3]": H[H > 3], "np.pi * h": np.pi * H, "h[0] / math.e": H[0] / np.e, "h[np.newaxis, 0]": H[None, 0],
    "h.astype(np.float64).sum()": H.sum(), "(h - s).std()": (H - S).std(), "h.T @ s": H.T @ S, "s.max() / h.max()": S.max() / H.max(),
    "np.where(h > 3, s, -h)": np.where(H > 3, S, -H), "grad(s) / s * math.pi": GRAD / S * np.pi, "abs(s / h * 2 - y).max() < 1e-4": True,
}


OF = {"(h - s).std()": "h, s", "h.T @ s": "h, s", "s.max() / h.max()": "s, h", "np.where(h > 3, s, -h)": "h, s",
      "grad(s) / s * math.pi": "grad(s), s", "abs(s / h * 2 - y).max() < 1e-4": "s, h, y"}


@pytest.fixture(autouse=True)
def eager(monkeypatch):
    """Nothing rests, however busy the machine is."""
    monkeypatch.setattr(live, "_DEAR", np.inf)


def number(snapshot):
    return np.frombuffer(base64.b64decode(snapshot["data"]), snapshot["dtype"]).reshape(snapshot["shape"])


def test_each_expression_is_what_float64_makes_of_it(adapter):
    made = {adapter.request("watch", expression=text, what="values")["watchId"]: text for text in VALUES}
    reference = model(X)
    for _ in VALUES:
        told = adapter.event("snapshot")
        text = made.pop(told["watchId"])
        one = "grad(s)" if "grad" in text else "s" if re.search(r"\bs\b", text) else "h"
        assert told["name"] == text and told["of"] == OF.get(text, one)
        assert told["backward"] is ("grad" in text) and told["step"] == 1
        np.testing.assert_allclose(number(told), VALUES[text], rtol=1e-5, err_msg=text)
        assert number(told).shape == np.shape(VALUES[text]), text
    adapter.none("snapshot", 0.1)
    assert all(np.array_equal(a, b) for a, b in zip(model(X)[:2], reference[:2], strict=True))


def test_statistics_are_those_of_the_value_and_come_each_nth_launch(adapter):
    watch = adapter.request("watch", expression="s[1] * 2", what="stats", everyN=3, name="row")["watchId"]
    bits = adapter.request("watch", expression="h > 3", what="stats", everyN=100)["watchId"]
    for _ in range(7):
        model(X)
    told = [adapter.event("snapshot", where=lambda event: event["watchId"] == watch) for _ in range(3)]
    assert [b["launch"] - a["launch"] for a, b in zip(told, told[1:], strict=False)] == [3, 3]
    row = S[1] * 2
    for snapshot in told:
        assert (snapshot["name"], snapshot["of"], snapshot["shape"], snapshot["stats"]["count"]) == ("row", "s", [4], 4)
        assert "data" not in snapshot
        for name in ("min", "max", "mean", "std"):
            np.testing.assert_allclose(snapshot["stats"][name], getattr(row, name)(), rtol=1e-5)
    counted = adapter.event("snapshot", where=lambda event: event["watchId"] == bits)["stats"]
    assert counted["count"] == H.size and counted["zero"] == np.count_nonzero(H <= 3)


@pytest.mark.parametrize(("text", "why"), [
    ("h +", "not an expression"), ("foo(h)", "`foo` is not called"), ("h.cuda()", "`.cuda()` is not called"),
    ("[x for x in h]", "`[x for x in h]` cannot be evaluated"), ("1 + 2", "`1 + 2` names no variable"),
    ("a + b + c + d + f + g + h + i + j", "is of 9 variables; at most 8"),
    ("np.load(h)", "`.load()` is not called"), ("(h + 1).bits", "`.bits` is not among"),
    ("max(h, key=lambda x: x)", "`lambda x: x` cannot be"), ("(" * 400 + "h" + ")" * 400, "not an expression"),
    ("-" * 3000 + "h", "an expression of 3,001 characters"),
])
def test_what_cannot_be_computed_is_refused_at_once_with_its_part(adapter, text, why):
    with pytest.raises(Refused) as refused:
        adapter.request("watch", expression=text)
    assert why in str(refused.value)


@pytest.mark.parametrize(("text", "why"), [
    ("abs(h[9]).max()", "`h[9]`: IndexError: index 9 is out of bounds for axis 0 with size 3"),
    ("(h @ h).sum()", "`h @ h`: ValueError: matmul"), ("h.reshape(5, 5).max()", "`h.reshape(5, 5)`: ValueError: cannot reshape"),
    ("1 / (h if h else 1)", "a tensor of shape [3, 4] is neither true nor false"), ("h.dtype", "`h.dtype` is"),
])
def test_what_fails_at_a_value_is_told_with_its_part_and_the_program_goes_on(adapter, text, why):
    adapter.request("watch", expression=text)
    model(X)
    told = adapter.event("snapshot")
    assert told["placeholder"] is True and why in told["reason"] and "stats" not in told and told["shape"] == [3, 4]
    model(X)
    assert adapter.event("snapshot")["launch"] == told["launch"] + 1


def test_a_value_larger_than_a_snapshot_is_computed_from_and_one_that_is_itself_larger_is_not_sent(adapter):
    adapter.request("configure", snapshotMaxBytes=16)
    whole, part = (adapter.request("watch", expression=text, what="values")["watchId"] for text in ("h * 2", "h[0]"))
    model(X)
    told = {event["watchId"]: event for event in (adapter.event("snapshot"), adapter.event("snapshot"))}
    assert told[whole]["placeholder"] and told[whole]["reason"] == "48 bytes, more than snapshotMaxBytes, 16"
    np.testing.assert_allclose(number(told[part]), H[0])


def test_snapshots_of_an_expression_are_kept_and_compared(adapter):
    watch = adapter.request("watch", expression="s.T", what="values", keep=4)["watchId"]
    model(X)
    first = adapter.event("snapshot")
    assert "data" not in first and first["shape"] == [4, 3]
    view = adapter.request("view", watch=watch, texts=True)
    assert view["shape"] == [4, 3] and [kept["snapshot"] for kept in view["kept"]] == [first["snapshot"]]
    np.testing.assert_allclose(np.array(view["texts"], np.float64).reshape(4, 3), S.T, rtol=1e-5)


def test_an_expression_nested_too_deeply_is_refused():
    limit = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(300)  # libraries raise it
        with pytest.raises(CommandError, match="nested too deeply"):
            live.Expression.read("-" * 400 + "h")
    finally:
        sys.setrecursionlimit(limit)


def test_an_expression_waits_for_its_variable_and_says_so(adapter):
    model(X)
    assert adapter.request("watch", expression="hh.max()")["message"].startswith("waits for a captured function to make hh")
    assert live.Expression.read("self.size")[0] == ("self.size",) and live.Expression.read("self.w.T.max()")[0] == ("self.w",)


def test_halves_are_summed_in_float32_and_what_is_dear_rests(monkeypatch):
    expression = live.Expression.read("h.sum()")[1]
    big = np.full((64, 64), 60000, np.float16)
    event = {"h": {"kind": "capture", "dtype": 2, "shape": big.shape, "data": big.tobytes(), "placeholder": ""}}
    assert expression.of(event, 1 << 20, statistics=True)["stats"]["max"] == big.astype(np.float64).sum()
    monkeypatch.setattr(live, "_DEAR", 0)
    monkeypatch.setattr(live, "_RESTS", 1e9)
    assert expression.of(event, 1 << 20, statistics=True) is not None
    assert expression.of(event, 1 << 20, statistics=True) is None
