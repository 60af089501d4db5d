"""@dvm.jit on functions, methods, cells, over MindSpore tensors and dvm.tensor; graph mode and its guards."""
from __future__ import annotations

import gc
import threading
from typing import Any

import numpy as np
import pytest

ms = pytest.importorskip("mindspore")

from mindspore import Parameter, Tensor, nn, ops  # noqa: E402

import dvm_core as dvm  # noqa: E402
from dvm_core import _core  # noqa: E402
from dvm_core.frontends import array_call, capture, jit, notices, reloadable  # noqa: E402

A = np.arange(12, dtype=np.float32).reshape(3, 4)


class Doubler(nn.Cell):
    def construct(self, x: Any) -> Any:
        return x * 2


# ---- what can be decorated -----------------------------------------------------------------------------------------------------------

def test_function_keeps_name_and_doc() -> None:
    @dvm.jit
    def twice(x: Any) -> Any:
        """Says so."""
        return x * 2

    assert twice.__name__ == "twice" and twice.__doc__ == "Says so."
    np.testing.assert_array_equal(twice(Tensor(A)).asnumpy(), A * 2)


@pytest.mark.parametrize("mode", ["stream", "PIK", "graph"])
def test_modes(mode: str) -> None:
    twice = dvm.jit(mode=mode)(lambda x: x * 2)
    for _ in range(2):
        np.testing.assert_array_equal(twice(Tensor(A)).asnumpy(), A * 2)


def test_method_cell_and_cell_class() -> None:
    class Thing:
        factor = 3.0

        @dvm.jit
        def scale(self, x: Any) -> Any:
            return x * self.factor

    @dvm.jit
    class Tripler(nn.Cell):
        def construct(self, x: Any) -> Any:
            return x * 3

    np.testing.assert_array_equal(Thing().scale(Tensor(A)).asnumpy(), A * 3)
    np.testing.assert_array_equal(Tripler()(Tensor(A)).asnumpy(), A * 3)
    cell = Doubler()
    assert dvm.jit(cell) is cell
    before = _core.stats()["programs"]
    np.testing.assert_array_equal(cell(Tensor(A)).asnumpy(), A * 2)
    assert _core.stats()["programs"] == before + 1
    Doubler()(Tensor(A))  # another cell of the class is untouched
    assert _core.stats()["programs"] == before + 1


def test_wrong_uses_say_what_is_right() -> None:
    with pytest.raises(dvm.ArgumentError, match="mode 'fast': there are 'stream', 'PIK', 'graph'"):
        dvm.jit(mode="fast")
    with pytest.raises(dvm.ArgumentError, match="not int"):
        dvm.jit(3)
    with pytest.raises(dvm.ArgumentError, match="mix dvm.tensor and mindspore"):
        dvm.jit(lambda a, b: a + b)(dvm.tensor(A), Tensor(A))


def test_arguments_that_contain_themselves() -> None:
    ring: list[Any] = [1, dvm.tensor(A)]
    ring.append(ring)
    assert jit._kinds((ring, {"ring": ring}), {}) == {"array"}


# ---- dvm.tensor ----------------------------------------------------------------------------------------------------------------------

def test_arrays_are_one_program_and_computed_on_return() -> None:
    @dvm.jit
    def f(x: Any, y: Any) -> Any:
        h = x * 2 + y
        return h * h, h

    before = _core.stats()["programs"]
    squared, h = f(dvm.tensor(A), dvm.tensor(A))
    assert _core.stats()["programs"] == before + 1 and capture.active() is None
    np.testing.assert_array_equal(h.numpy(), A * 3)
    np.testing.assert_array_equal(squared.numpy(), A * A * 9)


def test_array_read_inside_is_computed() -> None:
    def f(x: Any) -> Any:
        h = x + 1
        return h * 2 if float(h.numpy().sum()) > 0 else h

    np.testing.assert_array_equal(dvm.jit(f)(dvm.tensor(A)).numpy(), (A + 1) * 2)


def test_graph_mode_over_arrays_says_what_it_cannot_replay(capsys: pytest.CaptureFixture[str]) -> None:
    twice = dvm.jit(mode="graph")(lambda x: x * float(x.sum()))
    for _ in range(2):
        np.testing.assert_allclose(twice(dvm.tensor(A)).numpy(), A * A.sum(), rtol=1e-5)
    assert capsys.readouterr().err.count("runs in stream mode: it reads a value while it runs") == 1


def test_exception_in_an_array_function_ends_the_capture() -> None:
    def f(x: Any) -> Any:
        raise ValueError("on purpose")

    with pytest.raises(ValueError, match="on purpose"):
        dvm.jit(f)(dvm.tensor(A))
    assert capture.active() is None and not capture.captures()


# ---- steps and captures --------------------------------------------------------------------------------------------------------------

def test_steps_count_outermost_calls() -> None:
    inner = dvm.jit(lambda x: x + 1)
    outer = dvm.jit(lambda x: inner(inner(x)))
    before = reloadable.step()
    outer(Tensor(A))
    inner(Tensor(A))
    assert reloadable.step() == before + 2


def test_active_capture_finds_tensors_and_can_be_flushed_by_another_thread() -> None:
    seen: dict[str, Any] = {}

    def f(x: Any) -> Any:
        h = ops.tanh(x)
        g = h * 2
        (mine,) = capture.captures()[threading.get_ident()]
        assert mine is capture.active()
        worker = threading.Thread(target=mine.flush_all)
        worker.start()
        worker.join()
        for name, tensor in (("x", x), ("h", h), ("g", g)):
            seen[name] = np.array(mine.graph.array(mine.find(tensor)))
        seen["unknown"] = mine.find(Tensor(A)), mine.find("no tensor")
        return g + 1

    result = dvm.jit(f)(Tensor(A))
    np.testing.assert_allclose(seen["h"], np.tanh(A), rtol=1e-6)
    np.testing.assert_allclose(seen["g"], np.tanh(A) * 2, rtol=1e-6)
    np.testing.assert_array_equal(seen["x"], A)
    assert seen["unknown"] == (None, None)
    np.testing.assert_allclose(result.asnumpy(), np.tanh(A) * 2 + 1, rtol=1e-6)


def test_threads_capture_independently() -> None:
    f = dvm.jit(lambda x: ops.tanh(x * 2) + 1)
    results: dict[int, np.ndarray] = {}

    def work(n: int) -> None:
        for _ in range(5):
            results[n] = f(Tensor(A * n)).asnumpy()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for n, result in results.items():
        np.testing.assert_allclose(result, np.tanh(A * n * 2) + 1, rtol=1e-5)


# ---- graph mode ----------------------------------------------------------------------------------------------------------------------

class Told:
    """Notices of a block."""

    def __enter__(self) -> list[str]:
        self.texts: list[str] = []
        self.sink = lambda notice: self.texts.append(notice["text"])
        notices.add_sink(self.sink)
        return self.texts

    def __exit__(self, *_: Any) -> None:
        notices.remove_sink(self.sink)


def test_graph_mode_replays_without_the_body_and_reads_weights_where_they_are() -> None:
    weight = Parameter(Tensor(A), name="weight")
    runs = []

    @dvm.jit(mode="graph")
    def f(x: Any) -> Any:
        runs.append(1)
        return ops.tanh(x * weight), x

    def loss(x: Any) -> Any:
        h, same = f(x)
        return (h * same).sum()

    gradient = ms.value_and_grad(loss, 0, [weight])
    for n in range(1, 4):
        x = A / 10 + n
        value, (of_x, of_weight) = gradient(Tensor(x))
        w = weight.asnumpy().astype(np.float64)
        t = np.tanh(x * w)
        assert float(value) == pytest.approx(float((t * x).sum()), rel=1e-5)
        np.testing.assert_allclose(of_weight[0].asnumpy(), x * x * (1 - t * t), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(of_x.asnumpy(), t + x * w * (1 - t * t), rtol=1e-4, atol=1e-5)
        weight.set_data(Tensor(w.astype(np.float32) * 0.5))
    assert len(runs) == 1


def test_graph_mode_says_which_guard_missed() -> None:
    runs = []

    @dvm.jit(mode="graph")
    def f(x: Any, factor: float, y: Any = None) -> Any:
        runs.append(1)
        return x * factor if y is None else x * factor + y

    with Told() as texts:
        for x, factor, kept in ((A, 2.0, 1), (A, 2.0, 1), (A[:2], 2.0, 2), (A[:2], 3.0, 3), (A, 2.0, 3)):
            np.testing.assert_array_equal(f(Tensor(x), factor).asnumpy(), x * factor)
            assert len(runs) == kept
        f(Tensor(A), 2.0, y=Tensor(A))
    assert any("argument 0 (Float32[3,4] to Float32[2,4]) changed" in text for text in texts)
    assert any("argument 1 (2.0 to 3.0) changed" in text for text in texts)
    assert any("a keyword argument changed" in text for text in texts)


def test_graph_mode_knows_when_two_arguments_are_one_tensor() -> None:
    f = dvm.jit(mode="graph")(lambda a, b: a * 2 + b)
    x, y = Tensor(A), Tensor(A + 1)
    np.testing.assert_array_equal(f(x, x).asnumpy(), A * 3)
    np.testing.assert_array_equal(f(x, y).asnumpy(), A * 3 + 1)


def test_graph_mode_takes_scalar_arguments_anew() -> None:
    f = dvm.jit(mode="graph")(lambda x, s: x * s)
    for n in (2.0, 3.0):
        np.testing.assert_array_equal(f(Tensor(A), Tensor(n, ms.float32)).asnumpy(), A * n)


@pytest.mark.parametrize(("why", "body"), [
    ("it reads a value in Python", lambda x: x * 2 if x.sum() * 1 > 0 else x),
    ("MindSpore runs Erfinv", lambda x: ops.erfinv(x)),
    ("it draws random numbers", lambda x: nn.Dropout(p=0.5).set_train()(x)),
], ids=lambda value: value if isinstance(value, str) else "")
def test_what_cannot_be_traced_runs_in_stream_mode_and_says_why(why: str, body: Any) -> None:
    runs = []

    @dvm.jit(mode="graph")
    def f(x: Any) -> Any:
        runs.append(1)
        return body(x)

    f.__dvm__.name = why  # a name of its own: notices are told once a name
    with Told() as texts:
        for _ in range(3):
            f(Tensor(A))
    assert len(runs) == 3
    assert sum(f"runs in stream mode: {why}" in text for text in texts) == 1


def test_graph_mode_traces_again_after_a_reload() -> None:
    runs = []

    @dvm.jit(mode="graph")
    def f(x: Any) -> Any:
        runs.append(1)
        return x * 2

    f(Tensor(A))
    f(Tensor(A))
    reloadable.at_next_call(lambda step: None)
    f(Tensor(A))
    assert len(runs) == 2


def test_a_capture_that_an_interrupt_left_behind_ends_with_the_next_call() -> None:
    def interrupted() -> None:
        graph = _core.Graph("interrupted")
        capture.push(array_call.ArrayCapture(graph, "interrupted", 1))

    seen = []

    @dvm.jit
    def captured(x):
        seen.append([live.function for live in capture.captures()[threading.get_ident()]])
        return x * 2

    try:
        interrupted()
        gc.collect()  # the core holds what records
        left = dvm.tensor(np.ones(3, np.float32)) + 1
        np.testing.assert_array_equal(captured(dvm.tensor(np.ones(3, np.float32))).numpy(), [2, 2, 2])
        np.testing.assert_array_equal(left.numpy(), [2, 2, 2])
    finally:
        assert not capture.captures() and _core.active_capture() is None
    assert seen == [[captured.__qualname__]]


@pytest.mark.parametrize("read", [float, lambda t: t.item(), lambda t: t.asnumpy().item(), lambda t: t.tolist(),
                                  lambda t: 3.0 if t else 2.0])
def test_a_value_read_from_an_argument_is_read_anew_at_every_call(read) -> None:
    @dvm.jit(mode="graph")
    def scaled(x, t):
        return x * read(t)

    for value in (2.0, 0.0, 4.0):
        t = Tensor(value, ms.float32)
        np.testing.assert_array_equal(scaled(Tensor(A), t).asnumpy(), A * np.float32(read(t)))


def test_a_parameter_read_in_python_is_read_anew_at_every_call() -> None:
    class Gate(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.t = Parameter(Tensor(1.0, ms.float32))

        @dvm.jit(mode="graph")
        def construct(self, x):
            return x * 2 if self.t.asnumpy() > 0 else x * 3

    gate = Gate()
    for value, factor in ((1.0, 2), (-1.0, 3), (1.0, 2)):
        gate.t.set_data(Tensor(value, ms.float32))
        np.testing.assert_array_equal(gate(Tensor(A)).asnumpy(), A * factor)
