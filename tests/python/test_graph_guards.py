"""Graph mode traces again when something changes that the code reads from outside its arguments."""
from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest

ms = pytest.importorskip("mindspore")

from mindspore import Parameter, Tensor, nn, ops  # noqa: E402

import dvm_core as dvm  # noqa: E402

A = np.arange(12, dtype=np.float32).reshape(3, 4)
FACTOR = 2.0
settings = types.SimpleNamespace(deep=types.SimpleNamespace(factor=2.0), table={"factor": [1.0, 2.0]})  # one test changes it


class Scaled(nn.Cell):
    bias = 1.0

    def __init__(self, scale: float = 2.0) -> None:
        super().__init__()
        self.scale = scale
        self.w = Parameter(Tensor(A), name="w")
        self.constant = Tensor(A)

    def construct(self, x: Any) -> Any:
        return self.scaled(x) * self.w + self.constant + self.bias

    def scaled(self, x: Any) -> Any:
        return x * self.scale if self.training else x * self.scale * 2

    def expected(self, x: np.ndarray) -> np.ndarray:
        scale = self.scale if self.training else self.scale * 2
        return x * scale * self.w.asnumpy() + self.constant.asnumpy() + self.bias


class Outer(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.SequentialCell(Scaled(), nn.ReLU())
        self.runs = []

    def construct(self, x: Any) -> Any:
        self.runs.append(1)
        return self.parts(x)



def _traced(net: Outer) -> list[str]:
    return net.construct.__func__.__dvm__.traces.misses


@pytest.mark.parametrize(("name", "value", "said"), [
    ("scale", 3.0, ".scale (2.0 to 3.0)"), ("scale", 2, ".scale (2.0 to 2)"), ("bias", 5.0, ".bias (1.0 to 5.0)"),
    ("constant", Tensor(A + 1), ".constant (another tensor)"), ("w", Parameter(Tensor(A + 2), name="w"), ".w (another tensor)"),
    ("training", True, ".training (False to True)"),
])
def test_attributes_of_a_cell_inside(name: str, value: Any, said: str) -> None:
    net = dvm.jit(Outer(), mode="graph")
    part = net.parts[0]
    for _ in range(3):
        np.testing.assert_allclose(net(Tensor(A)).asnumpy(), np.maximum(part.expected(A), 0), rtol=1e-6)
    assert len(net.runs) == 1
    setattr(part, name, value)
    for _ in range(3):
        np.testing.assert_allclose(net(Tensor(A)).asnumpy(), np.maximum(part.expected(A), 0), rtol=1e-6)
    assert len(net.runs) == 2
    assert len(_traced(net)) == 1 and _traced(net)[0].endswith(said)


def test_new_values_in_the_same_weight_do_not_trace_again() -> None:
    net = dvm.jit(Outer(), mode="graph")
    net(Tensor(A))
    net.parts[0].w.set_data(Tensor(A * 3))
    np.testing.assert_allclose(net(Tensor(A)).asnumpy(), np.maximum(net.parts[0].expected(A), 0), rtol=1e-6)
    assert len(net.runs) == 1


def test_going_back_finds_the_old_trace() -> None:
    net = dvm.jit(Outer(), mode="graph")
    for training in (True, False, True, False):
        net.set_train(training)
        np.testing.assert_allclose(net(Tensor(A)).asnumpy(), np.maximum(net.parts[0].expected(A), 0), rtol=1e-6)
    assert len(net.runs) == 2


def test_two_cells_of_one_class_do_not_share_a_trace() -> None:
    kind = dvm.jit(type("Mine", (Scaled,), {}), mode="graph")
    one, other = kind(2.0), kind(5.0)
    for cell in (one, other, one):
        np.testing.assert_allclose(cell(Tensor(A)).asnumpy(), cell.expected(A), rtol=1e-6)


def _helper(x: Any) -> Any:
    return x * FACTOR


def test_globals_closures_and_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    closed, runs = 1.0, []

    @dvm.jit(mode="graph")
    def f(x: Any) -> Any:
        runs.append(1)
        return ops.tanh(_helper(x) * settings.deep.factor * settings.table["factor"][1] + closed)

    def checked(kept: int) -> None:
        for _ in range(2):
            expected = np.tanh(A / 50 * FACTOR * settings.deep.factor * settings.table["factor"][1] + closed)
            np.testing.assert_allclose(f(Tensor(A / 50)).asnumpy(), expected, rtol=1e-5)
        assert len(runs) == kept

    checked(1)
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    checked(2)
    monkeypatch.setattr(settings.deep, "factor", 0.5)
    checked(3)
    settings.table["factor"][1] = 4.0
    checked(4)
    closed = 7.0
    checked(5)
    monkeypatch.setattr(settings, "deep", types.SimpleNamespace(factor=1.0))
    checked(6)
    assert f.__dvm__.traces.misses == ["FACTOR (2.0 to 3.0)", "settings.deep.factor (2.0 to 0.5)",
                                       "settings.table['factor'][1] (2.0 to 4.0)", "closed (1.0 to 7.0)",
                                       "settings.deep (another SimpleNamespace)"]


def test_a_function_that_counts_its_calls_counts_them_all() -> None:
    counter = types.SimpleNamespace(calls=0)

    @dvm.jit(mode="graph")
    def f(x: Any) -> Any:
        counter.calls += 1
        return x * counter.calls

    for n in range(1, 5):
        np.testing.assert_array_equal(f(Tensor(A)).asnumpy(), A * n)


def test_arguments_that_are_objects() -> None:
    f = dvm.jit(lambda x, config: x * config["by"].factor, mode="graph")
    config = {"by": types.SimpleNamespace(factor=2.0)}
    for factor in (2.0, 3.0):
        config["by"].factor = factor
        np.testing.assert_array_equal(f(Tensor(A), config).asnumpy(), A * factor)
    np.testing.assert_array_equal(f(Tensor(A), {"by": types.SimpleNamespace(factor=9.0)}).asnumpy(), A * 9)
    assert f.__dvm__.traces.misses == ["config['by'].factor (2.0 to 3.0)", "an object among the arguments"]


class Listed(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.CellList([Scaled(1.0)])
        self.act = ops.tanh

    def construct(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        return self.act(x)


def test_parts_functions_and_methods_that_are_exchanged() -> None:
    net = dvm.jit(Listed(), mode="graph")
    x = Tensor(A / 100)

    def now() -> np.ndarray:
        return Listed.construct(net, x).asnumpy()

    for change in (lambda: None, lambda: net.parts.append(Scaled(0.5)), lambda: setattr(net, "act", ops.relu),
                   lambda: setattr(net.parts[0], "scaled", lambda x: x - 1)):
        change()
        for _ in range(2):
            np.testing.assert_allclose(net(x).asnumpy(), now(), rtol=1e-3)
    assert _traced(net) == ["len(self.parts) (1 to 2)", "self.act (another function)", "self.parts.0.scaled (another function)"]


def test_slices_among_the_arguments_count_by_value() -> None:
    f = dvm.jit(lambda x, part: x[part] * 2, mode="graph")
    for stop in (1, 1, 2):
        np.testing.assert_array_equal(f(Tensor(A), slice(0, stop)).asnumpy(), A[:stop] * 2)
    assert f.__dvm__.traces.misses == ["an object among the arguments"]
