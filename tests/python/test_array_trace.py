"""Graph mode of functions over dvm.tensor arrays: replays give what the function gives, and are not used where they must not be."""
from __future__ import annotations

import functools
import threading

import numpy as np
import pytest

import dvm_core as dvm
from dvm_core import _core
from dvm_core.frontends import reloadable

scale = 2.0
weight = dvm.tensor(np.full((4, 4), 3.0, np.float32))


def f32(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def replays(function) -> int:
    return len(function.__dvm__.replays)


def counted(body):
    """The function in graph mode, and how often its Python body has run."""
    runs = []

    @dvm.jit(mode="graph")
    def function(*args):
        runs.append(1)
        return body(*args)

    return function, runs


def test_a_replay_gives_the_same_bits_without_the_body():
    function, runs = counted(lambda x, y: (x * y).softmax(-1) + 1.0)
    for shape in [(3, 5), (8, 64), (0, 4), (200, 300), (3, 5)]:
        for seed in range(3):
            x, y = dvm.tensor(f32(*shape, seed=seed)), dvm.tensor(f32(*shape, seed=seed + 9))
            expected = ((x * y).softmax(-1) + 1.0).numpy()
            np.testing.assert_array_equal(function(x, y).numpy(), expected)
    assert len(runs) == 4 == replays(function)


def test_several_results_and_intermediates_on_both_cores():
    function, runs = counted(lambda x: (x.exp(), x.sum(0), (x - x.mean(-1, True)).reshape(-1)))
    for _ in range(3):
        x = dvm.tensor(f32(300, 200))
        made = function(x)
        assert type(made) is tuple
        for got, expected in zip(made, (x.exp(), x.sum(0), (x - x.mean(-1, True)).reshape(-1)), strict=True):
            np.testing.assert_array_equal(got.numpy(), expected.numpy())
    assert len(runs) == 1


def test_strides_dtypes_and_plain_values_make_other_replays():
    function, runs = counted(lambda x, by: x * by + 1)
    base = f32(6, 8)
    for x in (base, base.T, base[::2], base.astype(np.float64), base.astype(np.int32)):
        for by in (2, 3):
            for _ in range(2):
                np.testing.assert_allclose(function(dvm.tensor(x), by).numpy(), x * by + 1, rtol=1e-6)
    assert len(runs) == 10


def test_zero_and_minus_zero_are_two_values():
    function, _ = counted(lambda x, by: x * by)
    one = dvm.tensor(np.ones(2, np.float32))
    for by in (0.0, -0.0, 0.0, -0.0):
        assert np.signbit(function(one, by).numpy()).all() == np.signbit(by)


def test_one_array_twice_is_not_two():
    function, _ = counted(lambda x, y: x - 2 * y)
    a, b = dvm.tensor(f32(5)), dvm.tensor(f32(5, seed=1))
    for x, y in ((a, a), (a, b), (b, b), (b, a)):
        np.testing.assert_allclose(function(x, y).numpy(), x.numpy() - 2 * y.numpy(), rtol=1e-6)


def test_a_global_that_is_also_an_argument_stays_a_global():
    @dvm.jit(mode="graph")
    def function(x):
        return x - weight * 2

    other = dvm.tensor(np.ones((4, 4), np.float32))
    for x in (weight, other, weight):
        np.testing.assert_array_equal(function(x).numpy(), x.numpy() - weight.numpy() * 2)


def test_a_changed_global_or_closure_is_seen():
    factor = 3.0

    @dvm.jit(mode="graph")
    def function(x):
        return x * scale * factor

    x = dvm.tensor(np.ones(3, np.float32))
    assert function(x).numpy()[0] == function(x).numpy()[0] == 6
    try:
        globals()["scale"] = 5.0
        assert function(x).numpy()[0] == 15
        factor = 2.0
        assert function(x).numpy()[0] == 10
    finally:
        globals()["scale"] = 2.0
    assert function(x).numpy()[0] == 4


def test_memory_changed_in_numpy_is_read_at_every_call():
    function, _ = counted(lambda x: x + 1)
    base = np.zeros(4, np.float32)
    x = dvm.tensor(base)
    for i in range(4):
        base[:] = i
        assert (function(x).numpy() == i + 1).all()


@pytest.mark.parametrize("body", [
    lambda x: x * float(x.sum()),                   # reads a value
    lambda x: x,                                    # hands its argument through
    lambda x: (x + 1, x),
    lambda x: [x + 1],
    lambda x: (x + 1, 2),
    lambda x: kept.append(x * 2) or x + 1,          # keeps an array
])
def test_what_cannot_be_replayed_runs_every_time(body):
    function, runs = counted(body)
    for i in range(3):
        x = dvm.tensor(np.full(3, i, np.float32))
        got, expected = (r if isinstance(r, (tuple, list)) else [r] for r in (function(x), body(x)))
        for a, b in zip(got, expected, strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
        if body(x) is x:
            assert got[0] is x
    assert len(runs) == 3 and replays(function) == 0


kept: list = []


def test_pending_arguments_and_results_of_replays_go_on():
    function, runs = counted(lambda x: x * 2)
    x = dvm.tensor(f32(7))
    y = function(x + 1)
    for _ in range(3):
        y = function(y) - 1
    np.testing.assert_allclose(y.numpy(), ((((x.numpy() + 1) * 2) * 2 - 1) * 2 - 1) * 2 - 1, rtol=1e-6)
    assert len(runs) == 1


def test_inside_a_captured_call_it_is_part_of_that_call():
    inner, runs = counted(lambda x: x * 2)

    @dvm.jit
    def outer(x):
        return inner(x) + 1

    x = dvm.tensor(f32(5))
    inner(x)
    for _ in range(2):
        np.testing.assert_array_equal(outer(x).numpy(), (x * 2 + 1).numpy())
    assert len(runs) == 3


def test_new_code_is_traced_anew():
    function, runs = counted(lambda x: x * 2)
    x = dvm.tensor(np.ones(2, np.float32))
    function(x)
    function(x)
    applied = []
    reloadable.at_next_call(applied.append)
    function(x)
    assert applied == [reloadable.step()] and len(runs) == 2
    function(x)
    assert len(runs) == 2


def test_hooks_checks_and_the_debugger_see_the_call():
    function, runs = counted(lambda x: x.exp().log())
    x = dvm.tensor(f32(9))
    function(x)
    function(x)
    program = _core.programs()[-1]
    before = program.launches
    function(x)
    assert program.launches == before + 1 and len(runs) == 1
    _core.set_hook(program.id, 0, 2, 77)  # statistics
    try:
        function(x)
        assert len(runs) == 2 and any(event.get("hook") == 77 for event in _core.poll_events())
    finally:
        _core.clear_hook(program.id, 0, 2, 77)
    function(x)
    assert len(runs) == 2


def test_the_last_launch_of_a_program_is_the_replayed_one():
    function, _ = counted(lambda x: x * 3)
    shapes = [(4,), (6,)]
    for shape in shapes * 2:
        function(dvm.tensor(f32(*shape)))
        assert _core.programs()[-1].input_shapes[0][0] == shape


def test_an_index_out_of_range_is_told_with_its_place():
    function, _ = counted(lambda x, index: x[index] * 1)
    x = dvm.tensor(f32(5))
    function(x, dvm.tensor(np.array([0, 4])))
    for _ in range(2):
        with pytest.raises(dvm.Error, match="GATHER"):
            function(x, dvm.tensor(np.array([0, 9])))
        np.testing.assert_array_equal(function(x, dvm.tensor(np.array([1, 2]))).numpy(), x.numpy()[[1, 2]])


def test_threads_replay_the_same_function():
    function, _ = counted(lambda x: (x * 2).softmax(-1) - x)
    inputs = [dvm.tensor(f32(120, 400, seed=i)) for i in range(4)]
    expected = [((x * 2).softmax(-1) - x).numpy() for x in inputs]
    wrong = []

    def work(i: int) -> None:
        for _ in range(30):
            if not np.array_equal(function(inputs[i]).numpy(), expected[i]):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_arguments_given_away_carry_the_results():
    def update(p, m, g):
        m = 0.9 * m + 0.1 * g
        return p - 0.01 * m, m

    function = dvm.jit(update, mode="graph", donate=(0, 1))
    p, m = dvm.tensor(f32(50, 40)), dvm.tensor(f32(50, 40, seed=1))
    want_p, want_m = dvm.tensor(p.numpy().copy()), dvm.tensor(m.numpy().copy())
    first = p.numpy()
    before = first.copy()
    addresses = []
    for i in range(6):
        g = dvm.tensor(f32(50, 40, seed=i))
        want_p, want_m = update(want_p, want_m, g)
        want_p.numpy(), want_m.numpy()
        p, m = function(p, m, g)
        addresses.append(_core.array_alias(p).numpy().__array_interface__["data"][0])
        assert g.numpy() is not None
    np.testing.assert_array_equal(p.numpy(), want_p.numpy())
    np.testing.assert_array_equal(m.numpy(), want_m.numpy())
    np.testing.assert_array_equal(first, before)  # memory that NumPy knows is never taken
    assert len(set(addresses[2:])) < len(addresses[2:])


def test_an_array_given_away_says_so_and_views_of_it_stay():
    function = dvm.jit(lambda x: x * 2, mode="graph", donate=(0,))
    for _ in range(3):
        x = dvm.tensor(f32(9)) + 1
        x.numpy()
        other = _core.array_alias(x)
        want = x.numpy().copy()
        y = function(x)
        np.testing.assert_array_equal(y.numpy(), want * 2)
        np.testing.assert_array_equal(other.numpy(), want)
        with pytest.raises(dvm.Error, match="given away"):
            x.numpy()
        with pytest.raises(dvm.Error, match="given away"):
            (x + 1).numpy()
    with pytest.raises(dvm.ArgumentError, match="graph"):
        dvm.jit(lambda x: x, donate=(0,))
    with pytest.raises(dvm.ArgumentError, match="this is a cell"):
        dvm.jit(type("Cell", (), {"construct": lambda self, x: x}), mode="graph", donate=(1,))


def test_what_is_read_late_is_not_written_over():
    function = dvm.jit(lambda x, y: (x - x.sum(0), x * y), mode="graph", donate=(0, 1))
    for i in range(4):
        x, y = dvm.tensor(f32(30, 20, seed=i)) * 1, dvm.tensor(f32(30, 20, seed=i + 9)) * 1
        x.numpy(), y.numpy()
        want = (x - x.sum(0)).numpy(), (x * y).numpy()
        x, y = (x * 1), (y * 1)
        _ = (x + y).numpy()
        made = function(x, y)
        for a, b in zip(made, want, strict=True):
            np.testing.assert_array_equal(a.numpy(), b)


def test_a_replay_that_fails_gives_nothing_away():
    function = dvm.jit(lambda p, index: (p * 2, p[index]), mode="graph", donate=(0,))
    good, bad = dvm.tensor(np.array([0, 4])), dvm.tensor(np.array([0, 9]))
    for own in (False, True):
        for index in (good, good, bad, bad):
            p = dvm.tensor(f32(5))
            if own:
                p = p * 1
                (p + 0).numpy()
            want = f32(5)
            if index is bad:
                with pytest.raises(dvm.Error, match="GATHER"):
                    function(p, index)
                np.testing.assert_array_equal((p + 0).numpy(), want)
            twice, picked = function(p, good)
            np.testing.assert_array_equal(twice.numpy(), want * 2)
            np.testing.assert_array_equal(picked.numpy(), want[[0, 4]])
            with pytest.raises(dvm.Error, match="given away"):
                p.numpy()
    assert replays(function) == 1


@pytest.mark.parametrize("donate", [(-1,), (0, 0), (0, -2), (0.0,), (True,), ("x",), "x", 1, None])
def test_donate_takes_numbers_of_arguments(donate):
    with pytest.raises(dvm.ArgumentError, match="donate"):
        dvm.jit(lambda x: x * 2, mode="graph", donate=donate)


def test_replays_take_no_negative_number():
    with pytest.raises(_core.Error, match="negative"):
        _core.Replays((0, -1), "f")


def test_a_pending_argument_given_to_a_replay_tells_its_own_error():
    function, _ = counted(lambda x: x * 2)
    function(dvm.tensor(f32(1)))
    bad = dvm.tensor(f32(5))[dvm.tensor(np.array([99]))]
    for _ in range(2):
        with pytest.raises(dvm.Error, match="GATHER.*99"):
            function(bad)


def test_a_hook_on_a_program_that_was_forgotten_and_made_again_is_seen():
    function, runs = counted(lambda x: x * 3 + 1)
    x = dvm.tensor(f32(6))
    function(x)
    function(x)
    old = _core.programs()[-1].id
    for i in range(4097):
        graph = _core.Graph(f"fill{i}")
        graph.flush((graph.op(_core_op("NEG"), (graph.input(SPACE.ctypes.data, (2,), 1, None, SPACE, ""),)),))
    assert old not in {program.id for program in _core.programs()} and len(runs) == 1
    function(x)
    program = _core.programs()[-1]
    assert program.id > old and len(runs) == 2
    function(x)
    assert len(runs) == 2
    _core.set_hook(program.id, 0, 2, 78)  # statistics
    try:
        function(x)
        assert any(event.get("hook") == 78 for event in _core.poll_events())
    finally:
        _core.clear_hook(program.id, 0, 2, 78)


SPACE = np.zeros(2, np.float32)


def _core_op(name: str) -> int:
    return next(code for known, code, *_ in _core.OPS if known == name)


@pytest.mark.parametrize("read", [float, lambda t: t.item(), lambda t: t.numpy().item(), lambda t: t.tolist(),
                                  lambda t: np.asarray(t).item(), lambda t: 3.0 if t else 2.0])
def test_a_value_read_from_an_argument_is_read_anew_at_every_call(read):
    @dvm.jit(mode="graph")
    def scaled(x, t):
        return x * read(t)

    for value in (2.0, 0.0, 4.0):
        t = dvm.tensor(np.float32(value))
        np.testing.assert_array_equal(scaled(dvm.tensor(np.ones(3, np.float32)), t).numpy(), np.full(3, read(t), np.float32))


def test_an_array_is_iterated_along_its_first_axis():
    rows = list(dvm.tensor(np.arange(6, dtype=np.float32).reshape(2, 3)))
    assert [row.tolist() for row in rows] == [[0, 1, 2], [3, 4, 5]]
    a, b = dvm.tensor(np.float32([1, 2]))
    assert (a.item(), b.item()) == (1, 2)
    with pytest.raises(TypeError, match="rank 0"):
        iter(dvm.tensor(1.0))


def test_code_and_defaults_that_are_exchanged_in_place_are_seen():
    def by_two(x, by=2.0, *, plus=0.0):
        return x * by + plus

    def by_five(x, by=2.0, *, plus=0.0):
        return x * 5.0

    wrapped = functools.wraps(by_two)(lambda *args: by_two(*args) * 1.0)
    other = functools.wraps(by_two)(lambda *args: by_two(*args) * 3.0)
    own, code = by_two.__code__, wrapped.__code__
    kept = [by_two]
    for called in (lambda x: by_two(x), by_two, lambda x: wrapped(x), functools.partial(by_two), lambda x: kept[0](x)):
        function, runs = counted(called)
        x = dvm.tensor(np.ones(3, np.float32))

        def values(function=function, x=x):
            first, again = (function(x).tolist()[0] for _ in range(2))
            assert first == again
            return first

        assert values() == 2
        count = len(runs)
        by_two.__code__ = by_five.__code__
        assert values() == 5
        by_two.__code__ = own
        assert values() == 2
        by_two.__defaults__ = (7.0,)
        assert values() == 7
        by_two.__defaults__ = (2.0,)
        by_two.__kwdefaults__ = {"plus": 1.0}
        assert values() == 3
        by_two.__kwdefaults__["plus"] = 4.0
        assert values() == 6
        by_two.__kwdefaults__ = {"plus": 0.0}
        assert values() == 2
        assert count < len(runs) < 14  # every second call is a replay
    function, _ = counted(lambda x: wrapped(x))
    assert function(x).tolist()[0] == function(x).tolist()[0] == 2
    wrapped.__code__ = other.__code__
    assert function(x).tolist()[0] == 6
    wrapped.__code__ = code


def test_the_code_of_the_graph_function_itself_is_seen():
    def double(x):
        return x * 2.0

    def triple(x):
        return x * 3.0

    function, x = dvm.jit(double, mode="graph"), dvm.tensor(np.ones(3, np.float32))
    assert [function(x).tolist()[0] for _ in range(3)] == [2, 2, 2]
    own, double.__code__ = double.__code__, triple.__code__
    assert [function(x).tolist()[0] for _ in range(3)] == [3, 3, 3]
    double.__code__ = own
    assert function(x).tolist()[0] == 2 and replays(function) == 2  # the first one stands again


def test_what_a_default_holds_is_seen():
    class Settings:
        factor = 2.0

    def scaled(x, factors=[2.0], settings=Settings):  # noqa: B006 what is tested
        return x * factors[0] * settings.factor

    function, x = dvm.jit(lambda x: scaled(x), mode="graph"), dvm.tensor(np.ones(3, np.float32))
    assert [function(x).tolist()[0] for _ in range(2)] == [4, 4]
    scaled.__defaults__[0][0] = 3.0
    assert function(x).tolist()[0] == 6
    Settings.factor = 5.0
    assert function(x).tolist()[0] == 15


def test_too_many_arguments_for_a_replay_are_the_reason_given(capsys):
    @dvm.jit(mode="graph")
    def total(*parts):
        return sum(parts[1:], parts[0])

    most = _core.REPLAYED_ARGUMENTS
    x = dvm.tensor(np.ones(3, np.float32))
    assert total(*[x + i for i in range(most)]).tolist()[0] == most * (most + 1) / 2 and replays(total) == 1
    total(*[x + i for i in range(most + 1)])
    assert replays(total) == 1
    assert f"it takes {most + 1} arguments, and a replay at most {most}" in capsys.readouterr().err
