"""Every way in which a program comes to several processes: each is a session of its own, a rank by its number."""
import importlib.util
import queue
import sys
import threading

import pytest
from dvm_wire.ranks import rank_of, size_of
from harness import PROGRAMS, line_of

pytest.importorskip("numpy")
pytest.importorskip("dvm_core._core")

PROGRAM = PROGRAMS / "ranks.py"
LINE = line_of(PROGRAM, "in every process")
WAIT = 180  # seconds: on hanging, not on speed
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch")


def children(adapter, count, lines, **launch):
    """Starts the program; the children's sessions by their names, and the root's session."""
    root = adapter()
    configurations = queue.Queue()

    def reverse(request):
        configurations.put(request["arguments"]["configuration"])
        return {}

    root.reverse = reverse
    threading.Thread(target=lambda: root.launch(**{"cwd": str(PROGRAMS), "subProcess": True, "dvm": {"hotReload": "off"}, **launch}),
                     daemon=True).start()
    found = {}
    for _ in range(count):
        configuration = configurations.get(timeout=WAIT)
        assert configuration["type"] == "dvm"
        child = found[configuration["name"]] = adapter()
        child.attach(PROGRAM, *lines, timeout=WAIT, **configuration)
    return found, root


def stop_and_go_on(child):
    body = child.event("stopped", timeout=WAIT)["body"]
    frames = child.stack(body["threadId"])
    assert [frame["name"] for frame in frames[:3]] == ["s = h + 1  # in every process", "── Python ──", "forward"]
    shown = {v["name"]: v["value"] for v in child.variables(child.scopes(frames[0]["id"])["Tensors"]["variablesReference"])}
    assert "f32[4]" in shown["h"]
    child.set_breakpoints(str(PROGRAM), [])
    child.go_on(body["threadId"])


@pytest.mark.parametrize("how", ["fork", "multiprocess"])
def test_a_forked_process_is_a_session_with_its_tensors(adapter, how):
    found, root = children(adapter, 1, [LINE], program=str(PROGRAM), args=[how])
    ((name, child),) = found.items()
    assert name.startswith("Subprocess")
    stop_and_go_on(child)
    root.event("terminated", timeout=WAIT)
    assert "worker 1 12.0" in root.printed() and "ended 0" in root.printed()


def test_a_rank_is_what_the_launcher_says():
    told = [({"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "8"}, 3, 8), ({"MS_ROLE": "MS_WORKER", "RANK_ID": "1", "RANK_SIZE": "2"}, 1, 2),
            ({"MS_ROLE": "MS_SCHED", "RANK_ID": "0", "RANK_SIZE": "2"}, None, 2), ({"PMI_RANK": "1", "PMI_SIZE": "4"}, 1, 4),
            ({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4"}, 2, 4), ({"LOCAL_RANK": "0"}, 0, None),
            ({"RANK": "-1"}, None, None)]
    assert [(rank_of(environment), size_of(environment)) for environment, *_ in told] == [(rank, size) for _, rank, size in told]


def test_processes_started_with_a_rank_are_named_by_it(adapter):
    found, root = children(adapter, 3, [LINE], program=str(PROGRAM), args=["launcher"])
    assert sorted(found) == ["rank 0", "rank 1", "scheduler"]
    for child in found.values():
        stop_and_go_on(child)
    root.event("terminated", timeout=WAIT)
    assert "ended 0 0 0" in root.printed()


@needs_torch
def test_workers_of_a_data_loader_are_sessions_and_its_batches_come(adapter):
    found, root = children(adapter, 1, [LINE], program=str(PROGRAM), args=["loader"])
    (child,) = found.values()
    stop_and_go_on(child)
    root.event("terminated", timeout=WAIT)
    assert "loaded 64.0" in root.printed()


@needs_torch
def test_torchrun_starts_a_session_for_each_rank(adapter):
    found, root = children(adapter, 2, [LINE], module="torch.distributed.run", args=["--nproc-per-node", "2", str(PROGRAM), "torchrun"],
                           python=[sys.executable])
    assert sorted(found) == ["rank 0", "rank 1"]
    for child in found.values():
        stop_and_go_on(child)
    root.event("terminated", timeout=WAIT)
    assert root.printed().count("sum 16.0") == 2
