"""The memory log of real launches in other tools' formats: opened with PyTorch's own script, and checked against Perfetto's rules."""
# ruff: noqa: F811 - fixtures are named as what they are imported as
import json
import pickle
import pickletools
import re

import numpy as np
import pytest
from agent_harness import adapter  # noqa: F401
from dvm_adapter.memory_files import perfetto, torch_snapshot
from dvm_adapter.memory_model import CLASSES, Buffer, read_buffers

import dvm_core as dvm


@dvm.jit
def forward(x, w):
    h = x @ w
    for _ in range(3):
        h = h + dvm.tensor(h @ w)
        h = h - h.sum(axis=0)
    return h.sum()


@pytest.fixture
def logged(adapter):
    """The log of a few steps, with snapshots of a value among the buffers."""
    x, w = (np.full((64, 64), 0.01, np.float32) for _ in range(2))
    adapter.request("watch", expression="h", path=__file__, what="values")
    for _ in range(4):
        forward(dvm.tensor(x), dvm.tensor(w)).numpy()
    adapter.event("snapshot")
    return read_buffers(adapter.request("memory"))


def replayed(trace):
    """Bytes in use after each entry, refusing what no allocator would do."""
    live, total, totals = {}, 0, []
    for entry in trace:
        address, size = entry["addr"], entry["size"]
        if entry["action"] == "alloc":
            assert all(address >= other + length or other >= address + size for other, length in live.items()), entry
            live[address] = size
            total += size
        elif entry["action"] == "free_completed":
            assert live.pop(address) == size
            total -= size
        totals.append(total)
    return live, totals


def test_pytorchs_script_reads_the_snapshot(logged):
    memory_viz = pytest.importorskip("torch.cuda._memory_viz")
    data = torch_snapshot(logged)
    assert data[:2] == b"\x80\x04"
    made = {opcode.name for opcode, _, _ in pickletools.genops(data)}
    assert not made & {"GLOBAL", "STACK_GLOBAL", "INST", "OBJ", "REDUCE", "NEWOBJ"}  # plain containers, no classes
    snapshot = pickle.loads(data)
    live, totals = replayed(snapshot["device_traces"][0])
    assert {entry["category"] for entry in snapshot["device_traces"][0]} >= {"activation", "workspace", "snapshot"}
    used = {block["address"]: block["size"] for segment in snapshot["segments"] for block in segment["blocks"]
            if block["state"] == "active_allocated"}
    assert used == live and totals[-1] == sum(live.values()) and max(totals) > totals[-1]
    assert f"segments: {len(snapshot['segments'])}" in memory_viz.segsum(snapshot)  # which checks that blocks fill their segments
    text = memory_viz.trace(snapshot)
    assert text.count(" = ") == len(logged)
    for view in (memory_viz.segments, memory_viz.memory):
        lines = view(snapshot, format_flamegraph=lambda lines: lines).splitlines()
        assert sum(int(line.rpartition(" ")[2]) for line in lines if "active_allocated" in line) == totals[-1]
    assert memory_viz.trace_plot(snapshot).count("snapshot.pickle") == 1


def check_trace(data):
    """Perfetto's rules for its JSON; the slices."""
    text = data.decode()
    assert not re.search(r'"(?:ts|dur)":-?[0-9.]*[eE]', text) and "NaN" not in text and "Infinity" not in text
    events = json.loads(text)["traceEvents"]
    slices, tracks = [e for e in events if e["ph"] == "X"], {}
    for e in events:
        assert {type(e["pid"]), type(e["tid"])} == {int} and e["ph"] in "MXCsf"
        if e["ph"] != "M":
            assert 0 <= e["ts"] < 1e12 and round(e["ts"], 3) == e["ts"]
    for e in slices:
        tracks.setdefault(e["tid"], []).append(e)
    for track in tracks.values():  # slices of a track nest, ours lie beside each other
        track.sort(key=lambda e: e["ts"])
        assert all(a["ts"] + a["dur"] <= b["ts"] + 1e-3 and a["dur"] >= 0 for a, b in zip(track, track[1:], strict=False))
    starts, ends = ({e["id"]: e for e in events if e["ph"] == ph} for ph in "sf")
    assert starts.keys() == ends.keys()
    for number, begin in starts.items():
        end = ends[number]
        assert end["bp"] == "e" and begin["ts"] <= end["ts"] and begin["tid"] == end["tid"]
        assert end["ts"] in {e["ts"] for e in tracks[end["tid"]]} and begin["ts"] in {e["ts"] for e in tracks[begin["tid"]]}
    return events, slices


def test_perfettos_rules_are_kept(logged):
    events, slices = check_trace(perfetto(logged))
    assert len(slices) == len(logged) and {e["cat"] for e in slices} <= {*CLASSES, "other"}
    again = sum(len({b.id for b in logged if b.address == address}) - 1 for address in {b.address for b in logged})
    assert again > 0 and sum(e["ph"] == "s" for e in events) == again
    counted = [e["args"]["bytes"] for e in events if e["name"] == "bytes alive in all"]
    assert counted[-1] == sum(b.bytes for b in logged if b.freed is None) and min(counted) >= 0
    assert [sum(e["args"].values()) for e in events if e["name"] == "bytes alive"] == counted


def buffer(number, born, freed, address=0x1000, size=64, **more):
    return Buffer(number, f"%{number}", "activation", size, born, freed, address, 0, 1, "", "model.py:3", **more)


@pytest.mark.parametrize("buffers", [
    [],
    [buffer(1, 5, None)],
    [buffer(1, 5, 5), buffer(2, 5, 7), buffer(3, 7, None)],  # one of no duration, the same address again and again
    [buffer(1, 5, 9, born_ns=1_790_000_000_000_000_001, freed_ns=1_790_000_000_900_000_000),
     buffer(2, 9, None, born_ns=1_790_000_000_900_000_123)],  # a clock that counts since 1970
], ids=["none", "one", "at once", "late clock"])
def test_odd_logs(buffers):
    _, slices = check_trace(perfetto(buffers))
    assert len(slices) == len(buffers)
    replayed(pickle.loads(torch_snapshot(buffers))["device_traces"][0])
