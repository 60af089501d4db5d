"""Stops in a MindSpore function of graph mode: its lines stop in replays, whenever their breakpoints were set, and a stop ends no trace."""
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
