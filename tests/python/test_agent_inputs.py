"""Watches of what a program reads: arguments, closures, globals and parameters."""
# ruff: noqa: F811 - fixtures are named as what they are imported as
import time
from types import SimpleNamespace

import numpy as np
import pytest
from agent_harness import adapter  # noqa: F401 - the fixture among them
from agent_watch_kit import W, X, loaded, run, values_of

import dvm_core as dvm
from dvm_core.agent import hooks, inputs, kept, session, watches
from dvm_core.frontends import capture, observed

MODEL = """import numpy as np

import dvm_core as dvm

SCALE = dvm.tensor(np.full((4, 3), 2.0, np.float32))


def product(h, weight):
    return h @ weight


def made(bias):
    @dvm.jit
    def forward(x, w, n=2):
        h = x * w
        p = product(h, SCALE)
        return (p + bias) * n
    return forward


forward = made(dvm.tensor(np.arange(3, dtype=np.float32)))
"""
SCALE = np.full((4, 3), 2, np.float32)
BIAS = np.arange(3, dtype=np.float32)


@pytest.fixture(autouse=True)
def patient(adapter):
    adapter.request("configure", snapshotTimeoutMs=60_000)  # beside load a copy of a result may begin late


@pytest.fixture
def model(tmp_path, request):
    with loaded(tmp_path / f"inputs_{abs(hash(request.node.name))}.py", MODEL) as module:
        yield module


@pytest.mark.parametrize("early", [True, False], ids=["set first", "set while it runs"])
@pytest.mark.parametrize(("name", "expected", "line"), [("x", X, 15), ("w", W, 15), ("SCALE", SCALE, 9), ("weight", SCALE, 9),
                                                       ("bias", BIAS, 17)])
def test_an_input_is_watched_by_any_name_that_a_function_has_for_it(adapter, model, name, expected, line, early):
    if not early:
        run(model, 2)
    answer = adapter.request("watch", expression=name, path=model.__file__, what="values")
    assert answer["matched"] == []
    run(model)
    told = adapter.event("snapshot")
    assert (told["name"], told["watchId"], told["backward"]) == (name, answer["watchId"], False)
    np.testing.assert_array_equal(values_of(told), expected)
    program = next(p for p in dvm._core.programs() if p.id == told["program"])
    assert dvm._core.place_info(program.instructions[told["instruction"]].place)[1] == line  # the first that reads it
    assert tuple(program.input_shapes[told["input"]][0]) == expected.shape


def test_statistics_of_an_input_are_those_of_its_values_and_come_each_nth_launch(adapter, model):
    run(model, 1)
    adapter.request("watch", expression="w", path=model.__file__, what="stats", everyN=3)
    run(model, 7)
    told = [adapter.event("snapshot") for _ in range(3)]
    assert [t["step"] - told[0]["step"] for t in told] == [0, 3, 6]
    stats = told[0]["stats"]
    assert (stats["min"], stats["max"], stats["count"]) == (W.min(), W.max(), W.size)
    assert stats["mean"] == pytest.approx(W.mean(dtype=np.float64)) and stats["std"] == pytest.approx(W.std(dtype=np.float64))


@pytest.mark.parametrize(("text", "value"), [
    ("w.std()", W.std()), ("(h @ SCALE).max()", (X * W @ SCALE).max()), ("abs(h - x).max()", abs(X * W - X).max()),
    ("(x[:, 0] * w[:, 0]).sum()", (X[:, 0] * W[:, 0]).sum())])
def test_an_expression_may_be_of_inputs_and_results(adapter, model, text, value):
    adapter.request("watch", expression=text, path=model.__file__, what="values")
    run(model)
    assert values_of(adapter.event("snapshot")) == pytest.approx(value, rel=1e-5)


def test_an_input_is_what_it_was_when_the_launch_began_and_no_bit_of_a_result_changes(adapter, model):
    plain = run(model)
    adapter.request("watch", expression="w", path=model.__file__, what="values")
    adapter.request("watch", expression="x", path=model.__file__, what="stats")
    weights = W.copy()
    given = dvm.tensor(weights)
    for step in range(3):
        result = model.forward(dvm.tensor(X), given)
        assert np.array_equal(result.numpy(), plain) or step
        seen = [adapter.event("snapshot") for _ in range(2)]
        assert np.array_equal(values_of(next(one for one in seen if one["name"] == "w")), given.numpy())
        given = given * 2


def test_large_inputs_of_another_order_are_measured_in_pieces(adapter, model):
    adapter.request("watch", expression="x", path=model.__file__, what="stats")
    x = np.random.default_rng(0).standard_normal((4, 90_000)).astype(np.float32)
    x[3, 5] = np.nan
    model.forward(dvm.tensor(x.T), dvm.tensor(W[:1])).numpy()
    stats = adapter.event("snapshot")["stats"]
    assert (stats["nan"], stats["count"], stats["min"], stats["max"]) == (1, x.size, np.nanmin(x), np.nanmax(x))
    assert stats["std"] == pytest.approx(np.nanstd(x.astype(np.float64)), rel=1e-9)


def test_a_value_above_the_limit_is_a_placeholder(adapter, model):
    adapter.request("configure", snapshotMaxBytes=100)
    adapter.request("watch", expression="w", path=model.__file__, what="values")
    run(model)
    assert adapter.event("snapshot")["reason"] == "128 bytes are more than the limit of 100"


TWO_FUNCTIONS = """import dvm_core as dvm


@dvm.jit
def head(h):
    return h + 1


@dvm.jit
def body(x):
    h = x * 3
    return h
"""


def test_a_name_that_an_instruction_makes_is_that_and_no_argument_of_another_function(adapter, tmp_path):
    with loaded(tmp_path / "two_functions.py", TWO_FUNCTIONS) as module:
        adapter.request("watch", expression="h", path=module.__file__, what="values")
        module.head(dvm.tensor(X)).numpy()
        np.testing.assert_array_equal(values_of(adapter.event("snapshot")), X)  # nothing else is called so yet
        h = module.body(dvm.tensor(X))
        np.testing.assert_array_equal(values_of(adapter.event("snapshot")), X * 3)
        module.head(h).numpy()
        module.head(h).numpy()
        module.body(h).numpy()
        np.testing.assert_array_equal(values_of(adapter.event("snapshot")), X * 3 * 3)  # of head there is none before it


def test_the_hook_of_an_input_that_is_dropped_before_it_is_set_does_not_come_back(tmp_path, monkeypatch):
    with loaded(tmp_path / "dropped_inputs.py", TWO_FUNCTIONS.replace("+ 1", "+ 7").replace("* 3", "* 7")) as module:
        before = {program.id for program in dvm._core.programs()}
        module.head(dvm.tensor(X)).numpy()
        module.body(dvm.tensor(X)).numpy()
        head, body = sorted((p for p in dvm._core.programs() if p.id not in before), key=lambda p: p.id)
    changed = []
    monkeypatch.setattr(dvm._core, "change_hooks", lambda clear, set: changed.append(([*clear], [hook[:2] for hook in set])))
    monkeypatch.setattr(dvm._core, "programs", lambda: [head])
    monkeypatch.setattr(hooks, "_AT_ONCE", 0)  # what is set waits
    monkeypatch.setattr(hooks, "_AGAIN", 1e9)
    named = SimpleNamespace(of=lambda program: {0: {"h": {""}}} if program == head.id else {}, want=lambda: None)
    session = SimpleNamespace(inputs=named, settings={"snapshotMaxBytes": 1 << 20}, kept=kept.Kept(), texts=None, step=lambda: 1)
    found = watches.Watches(session)
    watch = watches.Watch(1, "h", dvm._core.HOOK_CAPTURE, 1, variables=("h",))
    found.add(watch)
    assert changed == [] and [match["input"] for match in watch.matched] == [0]
    found.new_program(body)
    found.settle()
    (made, _), = body_places = list(watch.found[body.id].items())
    assert changed == [([(head.id, -1, dvm._core.HOOK_CAPTURE, 1)], [(body.id, made)])] and len(body_places) == 1
    assert list(watch.places) == [(body.id, made)] and not watch.readers and watch.unmade() == []
    assert found.snapshots({"hook": 1, "program": head.id, "instruction": -1}) == []  # one that was on its way
    found.remove(1)
    found.new_program(body)
    found.settle()
    assert changed[1:] == [([(body.id, made, dvm._core.HOOK_CAPTURE, 1)], [])]


def test_a_fault_while_names_are_noted_is_told_and_not_raised_in_the_program(adapter, model, monkeypatch):
    def fault(frame):
        raise LookupError("a frame of another kind")

    monkeypatch.setattr(inputs, "user_frame", fault)
    adapter.request("watch", expression="w", path=model.__file__, what="stats")
    capture.on_input()
    assert capture.on_input is None and capture.names_for == 0
    assert adapter.event("notice")["text"] == "the inputs of programs are named no longer: LookupError: a frame of another kind"
    run(model)


def test_once_a_session_has_ended_no_program_makes_it_note_names_again():
    noting = inputs.Inputs(SimpleNamespace(step=lambda: 1))
    noting.want()
    assert capture.on_input is not None and capture.names_for
    noting.end()
    noting.want()  # of a program that was being made
    assert capture.on_input is None and not capture.names_for


def test_a_child_of_a_fork_ends_its_session_though_a_thread_of_the_parent_held_its_locks():
    made = session.Session(SimpleNamespace())
    parts = (made.watches, made.inputs, made.sampling, made.following)
    for part in parts:
        part.lock.acquire()
    made.forked()
    made.watches.clear()
    made.inputs.end()
    made.sampling.stop()
    made.following.end()
    assert not any(part.lock.locked() for part in parts)


def test_what_is_no_tensor_is_told_and_names_are_noted_no_longer_once_nothing_is_watched(adapter, model):
    answer = adapter.request("watch", expression="n", path=model.__file__, what="stats")
    run(model, 4)
    assert "; n is an argument of made.<locals>.forward: it is watched from the next call on" in adapter.event("notice")["text"]
    adapter.request("unwatch", watchId=answer["watchId"])
    adapter.request("watch", expression="h", path=model.__file__, what="stats")
    run(model)
    adapter.event("snapshot")
    end = time.monotonic() + 20
    while capture.on_input is not None:  # the agent looks every so often
        assert time.monotonic() < end
        run(model)


def test_an_input_on_a_device_is_watched(adapter, model):
    adapter.request("watch", expression="w", path=model.__file__, what="values")
    adapter.request("watch", expression="w", path=model.__file__, what="stats")
    dvm.set_device("npu-sim:910b")
    try:
        on_chip = dvm.tensor(W) * 1.0
        model.forward(dvm.tensor(X), on_chip).numpy()
        told = [adapter.event("snapshot") for _ in range(2)]
    finally:
        dvm.set_device("cpu")
    for one in told:
        if "data" in one:
            np.testing.assert_array_equal(values_of(one), W)
        else:
            assert (one["stats"]["min"], one["stats"]["max"]) == (W.min(), W.max())
    assert sorted("data" in one for one in told) == [False, True]


MIXED = """import numpy as np

import dvm_core as dvm

A, B = (dvm.tensor(np.full((8, 4), value, np.float32)) for value in (1, 2))


@dvm.jit
def chosen(x, first):
    return x * (A if first else B) + 7


@dvm.jit
def again(x, a, b):
    t = a
    h = x * t
    t = b
    return h + t


@dvm.jit
def outer(x, w):
    return helper.scaled(x, w) + 9
"""


@pytest.mark.parametrize(("name", "value"), [("A", 1), ("B", 2)])
def test_a_name_that_is_another_tensor_in_other_calls_is_told_of_in_those_that_have_it(adapter, tmp_path, name, value):
    with loaded(tmp_path / f"mixed_calls_{name}.py", MIXED) as module:
        adapter.request("watch", expression=name, path=module.__file__, what="values", everyN=2)
        for step in range(8):
            module.chosen(dvm.tensor(X), step % 2 == 0).numpy()
        told = [adapter.event("snapshot") for _ in range(2)]
        assert told[1]["step"] - told[0]["step"] == 4  # each second call that reads it
        assert all((values_of(one) == value).all() for one in told)


def test_an_expression_over_a_name_of_several_inputs_takes_the_one_that_is_read_first_and_says_so(adapter, tmp_path):
    with loaded(tmp_path / "mixed_names.py", MIXED) as module:
        adapter.request("watch", expression="(t * x).max()", path=module.__file__, what="values")
        for _ in range(3):
            module.again(dvm.tensor(X), dvm.tensor(W), dvm.tensor(W * 2)).numpy()
        told = adapter.event("notice", where=lambda event: event["category"] == "watch")
        assert "several tensors that again reads: the first read, at mixed_names.py:16, is taken" in told["text"]
        for _ in range(2):
            assert values_of(adapter.event("snapshot")) == pytest.approx((W * X).max())


def test_an_expression_is_computed_in_those_calls_that_have_its_names(adapter, tmp_path):
    with loaded(tmp_path / "mixed_expression.py", MIXED) as module:
        adapter.request("watch", expression="(A + x).max()", path=module.__file__, what="values")
        for step in range(6):
            module.chosen(dvm.tensor(X), step % 2 == 0).numpy()
        told = [adapter.event("snapshot") for _ in range(3)]
        assert [one["step"] - told[0]["step"] for one in told] == [0, 2, 4]
        assert {float(values_of(one)) for one in told} == {1 + X.max()}


RELOADED = """import numpy as np

import dvm_core as dvm

h = dvm.tensor(np.full((8, 4), 5, np.float32))


def joined(x, first, second):
    return x * first + second


@dvm.jit
def forward(x, w, b):
    h = x + w
    return joined(h, w, b)
"""


@pytest.mark.parametrize(("name", "old", "new", "before", "after"), [
    ("first", "(h, w, b)", "(h, b, w)", W, W * 3), ("w", "(h, w, b)", "(h, b, w)", W, W),
    ("h", "    h = x + w\n    return joined(h, w, b)", "    return joined(x * h, w, b)", X + W, np.full((8, 4), 5))])
def test_after_a_reload_names_are_looked_up_anew(adapter, tmp_path, name, old, new, before, after):
    path = tmp_path / f"looked_up_{name}.py"
    with loaded(path, RELOADED) as module:
        def call():
            module.forward(dvm.tensor(X), dvm.tensor(W), dvm.tensor(W * 3)).numpy()
            dvm._core.synchronize_copies()

        adapter.request("watch", expression=name, path=str(path), what="values")
        call()
        assert np.array_equal(values_of(adapter.event("snapshot")), before)
        path.write_text(RELOADED.replace(old, new))
        number, end = adapter.send("reload", path=str(path)), time.monotonic() + 20
        while number not in adapter._answers:
            assert time.monotonic() < end
            call()
        assert adapter.answer(number)["outcome"] == "applied"
        step = adapter.request("status")["step"]
        while not (told := [event for event in list(adapter.events) if event.get("ev") == "snapshot" and event["step"] > step]):
            assert time.monotonic() < end
            call()
        assert np.array_equal(values_of(told[0]), after)


def test_a_helper_in_another_file_hides_no_argument_of_its_caller(adapter, tmp_path):
    text = "def scaled(x, w):\n    return x * w\n"
    with loaded(tmp_path / "mixed_helper.py", text) as helper, loaded(tmp_path / "mixed_caller.py", MIXED) as module:
        module.helper = helper
        adapter.request("watch", expression="w", path=module.__file__, what="values")
        module.outer(dvm.tensor(X), dvm.tensor(W)).numpy()
        np.testing.assert_array_equal(values_of(adapter.event("snapshot")), W)


CELLS = """import mindspore as ms
from mindspore import nn

import dvm_core as dvm


class Block(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(4, 4)
        self.w = ms.Parameter(ms.Tensor([[2.0] * 4]))

    def construct(self, t):
        return self.fc(t) * self.w


net = Block()


@dvm.jit(mode="MODE")
def loss(t, target):
    return ((net(t) - target) ** 2).mean()


step = ms.value_and_grad(loss, None, net.trainable_params())
"""


@pytest.mark.parametrize("mode", ["stream", "graph"])
def test_parameters_of_cells_and_arguments_are_watched_by_their_names(adapter, tmp_path, mode):
    ms = pytest.importorskip("mindspore")
    with loaded(tmp_path / f"cells_{mode}.py", CELLS.replace("MODE", mode)) as module:
        wanted = {"t": 8, "target": 8, "self.w": 4, "net.fc.weight": 16, "self.fc.bias": 4, "fc.weight": 16}
        for name in wanted:
            adapter.request("watch", expression=name, path=module.__file__, what="stats")
        for _ in range(2):
            module.step(ms.Tensor(X[:2]), ms.Tensor(W[:2]))
        told = [adapter.event("snapshot") for _ in range(2 * len(wanted))]
        assert {one["name"]: one["stats"]["count"] for one in told} == wanted
        assert len({(one["name"], one["step"]) for one in told}) == len(told)


def test_what_a_function_in_graph_mode_reads_is_watched_while_it_is_replayed_and_it_is_traced_once_more_for_that(adapter, tmp_path):
    ms = pytest.importorskip("mindspore")
    with loaded(tmp_path / "cells_replayed.py", CELLS.replace("MODE", "graph")) as module:
        def step():
            return module.step(ms.Tensor(X[:2]), ms.Tensor(W[:2]))

        plain = step()
        traced = observed.of("loss").traces
        step()
        adapter.request("watch", expression="target", path=module.__file__, what="values")
        results = [step() for _ in range(3)]
        for _ in results:
            np.testing.assert_array_equal(values_of(adapter.event("snapshot")), W[:2])
        assert all(np.array_equal(result[0].asnumpy(), plain[0].asnumpy()) for result in results)
        assert len(adapter.request("watch", expression="net.fc.weight", path=module.__file__, what="stats")["matched"]) == 1
        step()
        assert adapter.event("snapshot", where=lambda told: told["name"] == "net.fc.weight")["stats"]["count"] == 16
        assert observed.of("loss").traces == traced + 1  # the names are known from then on
