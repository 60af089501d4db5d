"""Stops in MindSpore functions: of graph mode in replays too, whenever set, and they end no trace. Gradients have names."""
import pytest
from agent_harness import Running, adapter  # noqa: F401 - the fixture among them
from agent_watch_kit import loaded

pytest.importorskip("mindspore")

import mindspore as ms  # noqa: E402
import numpy as np  # noqa: E402

TEXT = """import dvm_core as dvm

runs = []


@dvm.jit(mode="graph")
def scaled(x):
    runs.append(1)
    h = x * 2
    return h + 1
"""
X = np.arange(4, dtype=np.float32)


@pytest.mark.parametrize("early", [True, False])
def test_a_line_of_a_replayed_function_stops(adapter, tmp_path, early):  # noqa: F811
    with loaded(tmp_path / f"scaled_{early}.py", TEXT) as module:
        def breakpoint_on(line):
            adapter.request("breakpoints", lines=[{"id": 7, "path": module.__file__, "line": line, "mode": "forward"}])

        if early:
            breakpoint_on(9)
        module.scaled(ms.Tensor(X))  # Python stops in here itself
        if not early:
            breakpoint_on(9)
        for _ in range(2):
            program = Running(module.scaled, ms.Tensor(X))
            stop = adapter.event("vmstop")
            assert stop["FRAME"]["line"] == 9 and not stop["FRAME"]["backward"]
            adapter.request("go")
            np.testing.assert_array_equal(program.join().asnumpy(), X * 2 + 1)
        assert module.runs == [1]


LOSS = """import dvm_core as dvm
import mindspore as ms
from mindspore import ops


@dvm.jit(mode="MODE")
def loss(x):
    h = x * 3
    s = ops.tanh(h)
    return (s * s).sum()


gradient = ms.value_and_grad(loss)
"""


@pytest.mark.parametrize("mode", ["stream", "graph"])
def test_the_gradient_of_a_variable_is_watched_and_seen_at_a_stop(adapter, tmp_path, mode):  # noqa: F811
    with loaded(tmp_path / f"loss_{mode}.py", LOSS.replace("MODE", mode)) as module:
        tanh = np.tanh(3 * X)
        wanted = 2 * tanh * (1 - tanh ** 2)
        adapter.request("watch", id=1, expression="grad(h)", everyN=1)
        for _ in range(2):
            module.gradient(ms.Tensor(X))
            seen = adapter.event("snapshot")
            assert seen["name"] == "grad(h)"
            np.testing.assert_allclose(seen["stats"]["max"], wanted.max(), 1e-5)
        adapter.request("breakpoints", lines=[{"id": 7, "path": module.__file__, "line": 8, "mode": "backward"}])
        program = Running(module.gradient, ms.Tensor(X))
        assert adapter.event("vmstop")["FRAME"]["line"] == 8
        value = adapter.request("evaluate", expression="grad(h).max()", context="watch")
        assert float(value["result"]) == pytest.approx(wanted.max(), 1e-4)
        adapter.request("go")
        program.join()
