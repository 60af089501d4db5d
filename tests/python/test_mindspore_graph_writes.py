"""Graph mode changes what a function changes: arguments, states and parameters in place, as stream mode does, without its Python body."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

ms = pytest.importorskip("mindspore")

from mindspore import Parameter, Tensor, nn, ops  # noqa: E402

import dvm_core as dvm  # noqa: E402

CALLS = 5


class Written:
    """A function over two states, its calls counted."""

    def __init__(self, body: Callable[..., Any]) -> None:
        self.a = Parameter(Tensor(np.arange(6, dtype=np.float32).reshape(2, 3)), name="a", requires_grad=False)
        self.b = Tensor(np.ones((2, 3), np.float32))
        self.body, self.runs = body, 0

    def __call__(self, x: Any) -> Any:
        count(self)
        return self.body(self, x)

    def state(self) -> list[np.ndarray]:
        return [self.a.asnumpy().copy(), self.b.asnumpy().copy()]


def count(written: Written) -> None:
    vars(written)["runs"] += 1  # not through a name that the captured code reads: it would be guarded


def _twice(s: Written, x: Any) -> Any:
    s.a.copy_(s.a + x)
    before = s.a * 2
    s.a.copy_(s.a * x)
    return before + s.a


def _argument(s: Written, x: Any) -> Any:
    x[0] = 7.0
    s.b.copy_(x + s.b)
    return x


def _both(s: Written, x: Any) -> Any:
    s.a.copy_(x)
    s.b.copy_(x)
    return x * 2


def _exchanged(s: Written, x: Any) -> Any:
    a = s.a * 1
    s.a.copy_(s.b)
    s.b.copy_(a)
    return s.a, {"b": s.b, "x": x}


def _assigned(s: Written, x: Any) -> Any:
    new = s.a * 2 + x
    s.a.assign_value(new)
    return new, s.a + 1


def _inside(s: Written, x: Any) -> Any:
    h = x * 2
    h[0] = 1.0
    return h + s.b


def _added(s: Written, x: Any) -> Any:
    ops.assign_add(s.a, x)
    return s.a * s.b


BODIES = {body.__name__: body for body in (_twice, _argument, _both, _exchanged, _assigned, _inside, _added)}


def _arrays(value: Any) -> list[np.ndarray]:
    if isinstance(value, Tensor):
        return [value.asnumpy().copy()]
    return [array for item in (value.values() if isinstance(value, dict) else value) for array in _arrays(item)]


@pytest.mark.parametrize("name", BODIES)
def test_states_and_arguments_change_as_mindspore_changes_them(name: str) -> None:
    found = {}
    for mode in ("", "stream", "graph"):
        written = Written(BODIES[name])
        call = dvm.jit(mode=mode)(lambda x, written=written: written(x)) if mode else written
        steps = []
        for step in range(CALLS):
            x = Tensor(np.full((2, 3), step + 0.5, np.float32))
            result = call(x)
            steps.append([*_arrays(result), *written.state(), x.asnumpy().copy()])
            if name == "_argument":
                assert result.data_ptr() == x.data_ptr()
            if name == "_exchanged":
                assert result[0].data_ptr() == written.a.data_ptr() and result[1]["b"].data_ptr() == written.b.data_ptr()
        found[mode] = steps
        assert written.runs == (1 if mode == "graph" else CALLS)
    _check_equal(found["stream"], found[""])
    _check_equal(found["graph"], found[""])


def _check_equal(ours: list[list[np.ndarray]], theirs: list[list[np.ndarray]]) -> None:
    for mine, other in zip(ours, theirs, strict=True):
        for a, b in zip(mine, other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_what_a_result_shares_with_a_state_it_shares_again() -> None:
    written = Written(_assigned)
    call = dvm.jit(mode="graph")(lambda x: written(x))
    for _ in range(3):
        new, _ = call(Tensor(np.ones((2, 3), np.float32)))
        assert new.data_ptr() == written.a.data_ptr()
    assert written.runs == 1


def counted(runs: list[int], body: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`body`, which adds to `runs` when it runs."""
    def function(x: Any) -> Any:
        runs.append(1)
        return body(x)
    return function


OPTIMIZERS: dict[str, Callable[..., Any]] = {
    "Adam": lambda parameters, rate: nn.Adam(parameters, rate, weight_decay=0.01),
    "AdamWeightDecay": lambda parameters, rate: nn.AdamWeightDecay(parameters, rate, weight_decay=0.01),
    "Momentum": lambda parameters, rate: nn.Momentum(parameters, rate, momentum=0.9),
    "SGD": lambda parameters, rate: nn.SGD(parameters, rate, momentum=0.9, weight_decay=0.01),
    "Adam, decaying rate": lambda parameters, rate: nn.Adam(parameters, nn.ExponentialDecayLR(rate, 0.9, 2)),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_updates_are_mindspores_with_one_run_of_the_body(name: str) -> None:
    random = np.random.default_rng(3)
    gradients = [[random.standard_normal(shape).astype(np.float32) for shape in ((4, 3), (3,))] for _ in range(6)]
    found = {}
    for mode in ("", "graph"):
        values = np.random.default_rng(4)
        parameters = [Parameter(Tensor(values.standard_normal(shape).astype(np.float32)), name=f"p{i}")
                      for i, shape in enumerate(((4, 3), (3,)))]
        optimizer, runs = OPTIMIZERS[name](parameters, 0.1), []

        update = counted(runs, optimizer)
        step = dvm.jit(mode=mode)(update) if mode else update
        for number, given in enumerate(gradients):
            step(tuple(Tensor(g) for g in given))
            if number == 3 and "rate" not in name:
                ops.assign(optimizer.learning_rate, Tensor(0.02, ms.float32))  # a value: no reason to run the body again
        found[mode] = [p.asnumpy() for p in parameters]
        if mode:
            assert len(runs) == 1
    for ours, theirs in zip(found["graph"], found[""], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-6, atol=2e-6)


def test_a_loss_that_keeps_statistics_has_its_gradient_and_its_statistics() -> None:
    found = {}
    for mode in ("stream", "graph"):
        ms.set_seed(1)
        net, runs = nn.BatchNorm1d(3).set_train(), []

        loss = counted(runs, lambda x, net=net: (net(x) * ops.arange(x.shape[1])).sum())
        gradient = ms.value_and_grad(dvm.jit(mode=mode)(loss), 0, net.trainable_params())
        steps = []
        for step in range(4):
            x = np.random.default_rng(step).standard_normal((5, 3)).astype(np.float32)
            value, (dx, parameters) = gradient(Tensor(x))
            steps.append([value.asnumpy(), dx.asnumpy(), *[p.asnumpy() for p in parameters],
                          net.moving_mean.asnumpy().copy(), net.moving_variance.asnumpy().copy()])
        found[mode] = steps
        assert len(runs) == (4 if mode == "stream" else 1)
    _check_equal(found["graph"], found["stream"])


def _made(make: Callable[[], Any]) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        made = make()
        made[0] = x
        made[1] = made[0] + made[1]
        return made
    return function


MADE: dict[str, Callable[[Any], Any]] = {
    "zeros": _made(lambda: ops.zeros((2, 3), ms.float32)), "from NumPy": _made(lambda: Tensor(np.zeros((2, 3), np.float32))),
    "a parameter": _made(lambda: Parameter(Tensor(np.zeros((2, 3), np.float32)), name="made", requires_grad=False)),
    "unchanged": lambda x: Tensor(np.zeros((2, 3), np.float32)),
}


@pytest.mark.parametrize("name", MADE)
def test_what_a_call_makes_it_makes_anew_each_time(name: str) -> None:
    call = dvm.jit(mode="graph")(MADE[name])
    kept = [call(Tensor(np.full(3, n, np.float32))) for n in range(3)]
    assert len({tensor.data_ptr() for tensor in kept}) == 3
    for n, tensor in enumerate(kept):
        np.testing.assert_array_equal(tensor.asnumpy(), np.zeros((2, 3)) if name == "unchanged" else np.full((2, 3), n))


def test_an_argument_that_is_a_state_is_told_from_one_that_is_not() -> None:
    for own_first in (True, False):
        ema, other = Parameter(Tensor(np.full(2, 4, np.float32)), name="ema", requires_grad=False), Tensor(np.full(2, 8, np.float32))

        @dvm.jit(mode="graph")
        def update(p: Any, ema: Any = ema) -> Any:
            ema.copy_(ema * 0.5 + p * 0.5)
            return ema * 1

        expected = 4.0
        for given in (ema, other, ema, other) if own_first else (other, ema, other, ema):
            expected = expected if given is ema else expected * 0.5 + 4
            np.testing.assert_array_equal(update(given).asnumpy(), np.full(2, expected))
            np.testing.assert_array_equal(ema.asnumpy(), np.full(2, expected))
            np.testing.assert_array_equal(other.asnumpy(), [8, 8])


@pytest.mark.parametrize("give", [lambda states, x: states[0].set_data(x), lambda states, x: states[0].assign_value(x * 2),
                                  lambda states, x: states[0].copy_(x)], ids=["set_data", "assign_value", "copy_"])
def test_a_state_that_no_guard_reads_changes_at_every_call(give: Callable[[Any, Any], Any]) -> None:
    states = [Parameter(Tensor(np.zeros(2, np.float32)), name=f"s{n}", requires_grad=False) for n in range(1030)]  # too many to guard

    @dvm.jit(mode="graph")
    def step(x: Any) -> Any:
        give(states, x)
        return x * 2

    for n in range(1, 4):
        step(Tensor(np.full(2, n, np.float32)))
        assert states[0].asnumpy()[0] in (n, 2 * n)


def test_a_state_that_another_object_stands_for_over_the_same_memory_is_changed() -> None:
    state = {"s": Tensor(np.zeros(2, np.float32))}

    @dvm.jit(mode="graph")
    def step(x: Any) -> Any:
        state["s"].copy_(state["s"] + x)
        return state["s"] * 1

    for n in range(1, 5):
        np.testing.assert_array_equal(step(Tensor(np.ones(2, np.float32))).asnumpy(), [n, n])
        np.testing.assert_array_equal(state["s"].asnumpy(), [n, n])
        state["s"] = Tensor(state["s"])


def test_sgd_without_momentum_forgets_an_infinite_gradient() -> None:
    parameter = Parameter(Tensor(np.ones(2, np.float32)), name="p")
    optimizer = nn.SGD([parameter], 0.1)
    step = dvm.jit(mode="graph")(lambda g: optimizer(g))
    step((Tensor(np.array([np.inf, 0], np.float32)),))
    parameter.set_data(Tensor(np.ones(2, np.float32)))
    for _ in range(2):
        step((Tensor(np.ones(2, np.float32)),))
    np.testing.assert_allclose(parameter.asnumpy(), [0.8, 0.8], rtol=1e-6)


def test_a_range_is_as_long_as_its_argument_says() -> None:
    call = dvm.jit(mode="graph")(lambda x, n: x + ops.arange(n).sum())
    for n in (3, 4, 3):
        np.testing.assert_array_equal(call(Tensor(np.zeros(2, np.float32)), n).asnumpy(), [sum(range(n))] * 2)


def test_memory_stays_flat_over_updates() -> None:
    parameter = Parameter(Tensor(np.ones((256, 256), np.float32)), name="p")
    optimizer = nn.Adam([parameter], 1e-3)
    step = dvm.jit(mode="graph")(lambda g: optimizer(g))
    gradient = (Tensor(np.ones((256, 256), np.float32)),)
    live = []
    for _ in range(200):
        step(gradient)
        live.append(dvm.stats()["bytes_live"])
    assert max(live[100:]) <= max(live[10:100])
