"""What @dvm.jit(mode="graph") returns behaves as the function it stands for, and its replays are counted as launches are."""
from __future__ import annotations

import copy
import gc
import inspect
import itertools
import pickle
import weakref

import numpy as np
import pytest
from core_kit import Recorder

import dvm_core as dvm

X = dvm.tensor(np.arange(6, dtype=np.float32))


@dvm.jit(mode="graph")
def scaled(x: dvm.Array, by: float = 2.0) -> dvm.Array:
    """Times a number."""
    return x * by


class Layer:
    def __init__(self, gain: float) -> None:
        self.gain = gain

    @dvm.jit(mode="graph")
    def forward(self, x):
        return x * self.gain

    @staticmethod
    @dvm.jit(mode="graph")
    def twice(x):
        return x + x


def test_it_looks_like_the_function():
    assert (scaled.__name__, scaled.__qualname__, scaled.__module__, scaled.__doc__) == ("scaled", "scaled", __name__, "Times a number.")
    assert list(inspect.signature(scaled).parameters) == ["x", "by"] and "scaled" in repr(scaled)
    assert scaled.__wrapped__.__code__.co_name == "scaled" and scaled.__dvm__.mode == "graph"
    assert scaled.__code__.co_flags & inspect.CO_VARARGS and scaled.__globals__ and scaled.__closure__  # of the wrapper, as any decorator's
    with pytest.raises(AttributeError):
        scaled.nothing  # noqa: B018
    scaled.note = 3
    assert scaled.note == 3 and vars(scaled)["note"] == 3
    del scaled.note


def test_it_is_called_as_the_function():
    for _ in range(3):
        np.testing.assert_array_equal(scaled(X).numpy(), X.numpy() * 2)
        np.testing.assert_array_equal(scaled(X, 3.0).numpy(), X.numpy() * 3)
        np.testing.assert_array_equal(scaled(x=X, by=4.0).numpy(), X.numpy() * 4)
        np.testing.assert_array_equal(scaled(*[X], **{"by": 5.0}).numpy(), X.numpy() * 5)
    with pytest.raises(TypeError, match="scaled"):
        scaled()


def test_it_is_bound_as_a_method():
    first, second = Layer(2.0), Layer(3.0)
    for _ in range(3):
        np.testing.assert_array_equal(first.forward(X).numpy(), X.numpy() * 2)
        np.testing.assert_array_equal(Layer.forward(second, X).numpy(), X.numpy() * 3)
        np.testing.assert_array_equal(Layer.twice(X).numpy(), X.numpy() * 2)
    bound = second.forward
    assert bound.__self__ is second and bound.__func__ is Layer.forward


def test_it_is_pickled_by_name_and_copied_as_itself():
    assert pickle.loads(pickle.dumps(scaled)) is scaled and copy.deepcopy({"f": scaled})["f"] is scaled


def test_it_goes_with_its_last_user():
    def body(x):
        return x - 1.0

    function = dvm.jit(body, mode="graph")
    function(X)
    function.itself = function
    gone = weakref.ref(function)
    del function
    gc.collect()
    assert gone() is None


def test_every_replay_is_counted():
    function = dvm.jit(lambda x: (x + 1.0) * 3.0, mode="graph")
    function(X)
    program = dvm.programs()[-1]
    before, launches = dvm.stats(), program.core.launches
    for count in range(1, 60):
        function(X)
        assert program.core.launches == launches + count
    after = dvm.stats()
    name = program.name
    assert after["launches"] - before["launches"] == after["selector_hits"] - before["selector_hits"] == 59
    assert after["functions"][name]["launches"] - before["functions"][name]["launches"] == 59
    assert after["functions"][name]["instructions"] - before["functions"][name]["instructions"] == 118
    assert after["functions"][name]["time_us"]["kernels"] > 0


def test_replays_that_are_gone_are_counted_too():
    before = dvm.stats()["launches"], dvm.stats()["instructions"]
    function = dvm.jit(lambda x: x * 7.0, mode="graph")
    for _ in range(10):
        function(X)
    del function
    gc.collect()
    after = dvm.stats()
    assert after["launches"] - before[0] == after["instructions"] - before[1] == 10


def test_an_error_of_a_replay_names_the_users_line():
    take = dvm.jit(lambda x, i: x[i] * 2.0, mode="graph")
    good, bad = dvm.tensor(np.array([1, 2])), dvm.tensor(np.array([1, 99]))
    for _ in range(3):
        np.testing.assert_array_equal(take(X, good).numpy(), [2, 4])
    for _ in range(3):
        with pytest.raises(dvm.Error, match="test_replayed_function.py:.*GATHER.*99"):
            take(X, bad).numpy()
    np.testing.assert_array_equal(take(X, good).numpy(), [2, 4])


def test_results_are_memory_of_their_own():
    function = dvm.jit(lambda x, y: (x + y, x - y), mode="graph")
    kept = [function(X, X * float(i)) for i in range(50)]
    for i, (plus, minus) in enumerate(kept):
        np.testing.assert_array_equal(plus.numpy(), X.numpy() + X.numpy() * i)
        np.testing.assert_array_equal(minus.numpy(), X.numpy() - X.numpy() * i)


def test_a_short_replay_goes_on_when_its_program_was_forgotten():
    def made():
        @dvm.jit(mode="graph")
        def function(x):
            return x * 3 - 1
        return function

    one, other = made(), made()
    for _ in range(3):
        want = one(X).numpy()
        assert np.array_equal(other(X).numpy(), want)
    line = np.zeros(3, np.float32)
    for ops in itertools.islice(itertools.product(("neg", "abs", "exp", "sqrt", "tanh", "erf", "sigmoid", "log"), repeat=5), 4200):
        r = Recorder("other")  # one program more, and the cache has room for 4096
        value = r.input(line)
        for op in ops:
            value = getattr(r, op)(value)
        r.graph.flush([value])
    for function in (one, other, one, other):
        assert np.array_equal(function(X).numpy(), want)
