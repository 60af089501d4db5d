"""What is shown of tensors at a stop: variables, values by page, expressions, memory, disassembly, panels. With a fake agent."""
import base64
import json
import pickle
import re
import struct
import time

import pytest
import some
from harness import PROGRAMS, line_of

FAKE = PROGRAMS / "fake_debuggee.py"
LINE = line_of(FAKE, "h = x * 2")
PROGRAM = "0x" + format((3 << 32) + (1 << 31), "016x")


def at_the_line(session):
    session.start(FAKE, args=["2"], at=lambda client: client.set_breakpoints(str(FAKE), [LINE]))
    session.stopped()
    session.frame = session.stack(1)[0]["id"]
    session.tensors = session.variables(session.scopes(session.frame)["Tensors"]["variablesReference"])
    return session


@pytest.fixture(scope="module")
def stopped(lasting_adapter):
    return at_the_line(lasting_adapter())


def test_a_tensor_is_one_line_with_fixed_children(stopped):
    x, h = stopped.tensors
    assert x == {"name": "x", "value": "f32[3,4] min 0 max 2.75 mean 1.38 std 0.863", "type": "float32[3,4]",
                 "variablesReference": some.ours,
                 "namedVariables": 7, "evaluateName": "x", "memoryReference": hex(x["variablesReference"])}
    assert h["value"] == "f32[3,4]  not yet computed" and "memoryReference" not in h
    children = stopped.variables(x["variablesReference"])
    assert [child["name"] for child in children] == ["shape", "dtype", "device", "strides", "statistics", "values", "made at"]
    values = {child["name"]: child["value"] for child in children}
    assert values["shape"] == "[3, 4]" and values["strides"] == "[4, 1]" and values["made at"] == f"fake_debuggee.py:{LINE}  step"
    location = stopped.request("locations", locationReference=children[6]["valueLocationReference"])
    assert location == {"source": {"name": "fake_debuggee.py", "path": str(FAKE)}, "line": LINE}
    assert [c["value"] for c in stopped.variables(h["variablesReference"])][4:6] == ["not yet computed"] * 2


def test_statistics_are_lazy_and_open_into_figures(stopped):
    statistics = stopped.variables(stopped.tensors[0]["variablesReference"])[4]
    assert statistics["presentationHint"]["lazy"] is True
    (line,) = stopped.variables(statistics["variablesReference"])
    assert line["value"] == "min 0  max 2.75  mean NaN  std +Inf  elements 12  finite 11  zeros 1  NaN 1"
    figures = {v["name"]: v["value"] for v in stopped.variables(line["variablesReference"])}
    assert figures["elements"] == "12" and figures["−Inf"] == "0"


def test_integers_in_hexadecimal(stopped):
    def values(expression, **more):
        tensor = stopped.request("evaluate", expression=expression, frameId=stopped.frame)
        (inner,) = [c for c in stopped.variables(tensor["variablesReference"]) if c["name"] == "values"]
        rows = stopped.variables(inner["variablesReference"], **more)
        return rows[0]["value"], [e["value"] for e in stopped.variables(rows[1]["variablesReference"], **more)]

    assert values("n") == ("[-16, 0, 16, 32]", ["48", "64", "80", "96"])
    assert values("n", format={"hex": True}) == ("[-0x10, 0x0, 0x10, 0x20]", ["0x30", "0x40", "0x50", "0x60"])
    assert values("x", format={"hex": True}) == values("x")
    for form, shown in ({"hex": True}, "-0xff"), ({"hex": False}, "-255"):
        assert stopped.request("evaluate", expression="n.sum()", frameId=stopped.frame, format=form)["result"] == shown
    assert stopped.request("evaluate", expression="abs(x).max()", frameId=stopped.frame, format={"hex": True})["result"] == "2.75"


def test_values_are_paged_by_the_first_axis(stopped):
    values = stopped.variables(stopped.tensors[0]["variablesReference"])[5]
    assert values == some.with_items(value="[0…2]", indexedVariables=3)
    rows = stopped.variables(values["variablesReference"], filter="indexed", start=1, count=2)
    assert [(row["name"], row["value"]) for row in rows] == [("1", "[1, 1.25, 1.5, 1.75]"), ("2", "[2, 2.25, 2.5, 2.75]")]
    assert [row["indexedVariables"] for row in rows] == [4, 4]
    elements = stopped.variables(rows[1]["variablesReference"], filter="indexed", start=2, count=100)
    assert [(e["name"], e["value"]) for e in elements] == [("2", "2.5"), ("3", "2.75")]
    assert stopped.variables(rows[1]["variablesReference"], filter="indexed", start=4, count=10) == []
    assert stopped.variables(rows[1]["variablesReference"], filter="named") == []
    assert "no element" in stopped.refusal("setVariable", variablesReference=rows[1]["variablesReference"], name="9", value="1")


def test_without_paging_all_elements_come_and_no_more_than_fit(adapter):
    session = adapter()
    session.launch(lambda client: client.set_breakpoints(str(FAKE), [LINE]), {"supportsVariablePaging": False}, program=str(FAKE),
                   args=["1"])
    session.stopped()
    tensors = session.variables(session.scopes(session.stack(1)[0]["id"])["Tensors"]["variablesReference"])
    values = session.variables(tensors[0]["variablesReference"])[5]
    # start and count of a client that did not announce paging mean nothing
    rows = session.variables(values["variablesReference"], start=2, count=1)
    assert [row["name"] for row in rows] == ["0", "1", "2"]


def test_expressions_go_to_tensors_first_and_then_to_python(stopped):
    def evaluate(expression, context="repl"):
        return stopped.request("evaluate", expression=expression, frameId=stopped.frame, context=context)

    assert evaluate("x", "hover") == some.with_items(result="f32[3,4] min 0 max 2.75 mean 1.38 std 0.863", type="float32[3,4]",
                                                     variablesReference=some.ours)
    assert evaluate("abs(x).max()", "watch") == {"result": "2.75", "variablesReference": 0}
    assert evaluate("x + 1")["result"] == "2"  # Python's own x: the fake agent knows no such expression
    assert evaluate("x", "clipboard")["result"] == "[[0, 0.25, 0.5, 0.75], [1, 1.25, 1.5, 1.75], [2, 2.25, 2.5, 2.75]]"
    assert "no tensor is named 'q'" in stopped.refusal("evaluate", expression="q", frameId=stopped.frame, context="watch")
    assert "no tensor is named" in stopped.refusal("evaluate", expression="print(x)", frameId=stopped.frame, context="hover")
    labels = [t["label"] for t in stopped.request("completions", frameId=stopped.frame, text="x", column=2)["targets"]]
    assert labels[0] == "x" and labels.count("x") == 1
    assert "h" in [t["label"] for t in stopped.request("completions", frameId=stopped.frame, text="abs(", column=5)["targets"]]


def test_memory_is_read_to_its_end_and_not_beyond(stopped):
    reference = stopped.tensors[0]["memoryReference"]
    data = struct.pack("<12f", *(i / 4 for i in range(12)))
    body = stopped.request("readMemory", memoryReference=reference, offset=8, count=16)
    assert body == {"address": "0x8", "data": base64.b64encode(data[8:24]).decode()}
    body = stopped.request("readMemory", memoryReference=reference, offset=40, count=100)
    assert base64.b64decode(body["data"]) == data[40:] and body["unreadableBytes"] == 92
    assert stopped.request("readMemory", memoryReference=reference, offset=48, count=5) == {"address": "0x30", "unreadableBytes": 5}
    assert stopped.request("readMemory", memoryReference=reference, offset=-4, count=4)["unreadableBytes"] == 4
    assert stopped.request("readMemory", memoryReference=reference, count=0)["unreadableBytes"] == 0
    assert "not a memory reference" in stopped.refusal("readMemory", memoryReference="tensor", count=4)
    assert "no such reference" in stopped.refusal("readMemory", memoryReference="0x12", count=4)


@pytest.mark.parametrize("offset, count", [(0, 6), (-3, 5), (4, 10), (-20, 10), (50, 10), (-5, 20), (0, 0)])
def test_disassembly_has_exactly_as_many_lines_as_asked(stopped, offset, count):
    shown = stopped.request("disassemble", memoryReference=PROGRAM, instructionOffset=offset, instructionCount=count)["instructions"]
    assert len(shown) == count
    assert [line["address"] for line in shown] == sorted(line["address"] for line in shown)
    assert len({len(line["address"]) for line in shown} | {18}) == 1
    valid = [line for line in shown if line.get("presentationHint") != "invalid"]
    assert [line["instruction"] for line in valid] == [f"%{i} = MUL %0, %1" for i in range(max(0, offset), min(6, max(0, offset + count)))]
    if valid:
        assert "location" in valid[0]
        lines = [line["line"] for line in valid if "line" in line]
        assert lines == sorted(set(lines))  # a place is repeated only where it changes


def test_disassembly_of_what_is_not_there_is_refused(stopped):
    nowhere = "0x" + format((9 << 32) + (1 << 31), "x")
    assert "there is no program 9" in stopped.refusal("disassemble", memoryReference=nowhere, instructionCount=3)
    assert "not an instruction address" in stopped.refusal("disassemble", memoryReference="here", instructionCount=3)
    assert "0..100000" in stopped.refusal("disassemble", memoryReference=PROGRAM, instructionCount=-1)


def test_programs_have_listings(stopped):
    sources = stopped.request("loadedSources")["sources"]
    assert sources[0] == {"name": "fake_debuggee.py", "path": str(FAKE)}
    listing = sources[1]["sourceReference"]
    assert stopped.request("source", source=sources[1], sourceReference=listing)["content"] == "tensor of 3"
    assert stopped.request("loadedSources")["sources"][1]["sourceReference"] == listing
    assert stopped.request("dvm/program", id=3, level="tile")["text"] == "tile of 3"
    assert "graph, tensor, tile" in stopped.refusal("dvm/program", id=3, level="byte")
    assert stopped.request("dvm/programs")["programs"][0]["id"] == 3


def test_watches_hold_over_the_agents_coming_and_deliver_snapshots(session):
    def configure(client):
        answer = client.request("dvm/watch", expression="h", what="stats", everyN=1, name="hidden")
        assert answer == {"watchId": 1, "name": "hidden", "matched": [], "message": some.containing("imports dvm_core")}

    session.start(FAKE, args=["40", "0.02"], at=configure)
    snapshot = session.event("dvm/snapshot")["body"]
    assert snapshot == some.with_items(watchId=1, name="hidden", stats={"mean": "NaN"}, shape=[3, 4], step=some.int_)
    assert session.request("dvm/watch", program=3, instruction=2)["watchId"] == 2
    assert session.request("dvm/tensor", watchId=1)["shape"] == [3, 4]
    session.request("dvm/unwatch", watchId=1)
    session.request("dvm/unwatch", watchId=2)
    time.sleep(0.1)
    before = len(list(session.seen("dvm/snapshot")))
    time.sleep(0.2)
    assert len(list(session.seen("dvm/snapshot"))) == before
    for arguments, words in (({}, "a watch needs"), ({"expression": "h", "what": "all"}, "stats, values"),
                             ({"expression": "h", "everyN": 0}, "at least 1")):
        assert words in session.refusal("dvm/watch", **arguments)
    assert "no watch 77" in session.refusal("dvm/unwatch", watchId=77)


def test_tensors_come_with_bytes_and_a_slice_of_a_large_one(stopped):
    reference = stopped.tensors[0]["variablesReference"]
    body = stopped.request("dvm/tensor", variablesReference=reference, maxBytes=8)
    assert len(base64.b64decode(body["data"])) == 8 and body["stats"]["mean"] == "NaN" and "re" not in body
    assert stopped.request("dvm/tensor", memoryReference=stopped.tensors[0]["memoryReference"], maxBytes=0)["shape"] == [3, 4]
    assert stopped.request("dvm/tensor", expression="x")["ref"] == 1
    assert "is named by" in stopped.refusal("dvm/tensor")


def test_exports_open_in_other_tools(stopped, tmp_path):
    numpy = pytest.importorskip("numpy")
    target = tmp_path / "x.npy"
    body = stopped.request("dvm/export", format="npy", path=str(target), variablesReference=stopped.tensors[0]["variablesReference"])
    assert body["bytes"] == target.stat().st_size
    assert numpy.load(target).tolist() == numpy.arange(12, dtype="f4").reshape(3, 4).__truediv__(4).tolist()
    stopped.request("dvm/export", format="perfetto", path=str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert sum(e["ph"] == "X" for e in events) == 5
    assert max(e["args"]["bytes"] for e in events if e["name"] == "bytes alive in all") == 12288
    stopped.request("dvm/export", format="torch-snapshot", path=str(tmp_path / "s.pickle"))
    snapshot = pickle.loads((tmp_path / "s.pickle").read_bytes())
    actions = [entry["action"] for entry in snapshot["device_traces"][0]]
    assert actions.count("alloc") == 5 and actions.count("free_completed") == 3 and len(snapshot["segments"]) == 1
    assert "allowed: npy" in stopped.refusal("dvm/export", format="pdf", path="x")
    assert "cannot write" in stopped.refusal("dvm/export", format="html", path="/no/such/folder/x.html")


def test_memory_comes_as_data_and_as_a_page(stopped, tmp_path):
    for step in ("x", True, 1.5):
        assert "it must be a whole number" in stopped.refusal("dvm/memory", step=step)
    body = stopped.request("dvm/memory", html=str(tmp_path / "memory.html"), title="Fake")
    assert len(body["buffers"]) == 5 and body["peak"]["bytes"] == 12288
    assert "<h1>Fake</h1>" in (tmp_path / "memory.html").read_text(encoding="utf-8")


def test_a_reload_is_reported_once_and_breakpoints_are_bound_again(session):
    stopped = at_the_line(session)
    stopped.log.clear()
    assert stopped.request("dvm/reload", path=str(FAKE))["outcome"] == "applied"
    stopped.event("loadedSource")
    stopped.event("invalidated")
    assert [body["outcome"] for body in stopped.seen("dvm/reload")] == ["applied"]
    entries = [json.loads(line) for line in open(stopped.log_file)]
    sent = [entry["message"] for entry in entries if (entry.get("peer"), entry.get("direction")) == ("debugpy", "->")]
    assert [m["command"] for m in sent].count("setBreakpoints") == 2
    assert stopped.request("dvm/undoReload")["step"] == 3
    assert stopped.request("dvm/undoReload", path=str(FAKE))["path"] == str(FAKE)
    assert "\"path\" is 3; it must be the file" in stopped.refusal("dvm/undoReload", path=3)


def test_tokens_stay_out_of_the_log(stopped):
    text = open(stopped.log_file).read()
    assert '"DVM_TOKEN":"***"' in text and not re.search("[0-9a-f]{32}", text)


def test_a_cancelled_request_is_answered(stopped, tmp_path):
    began, end = tmp_path / "began", tmp_path / "end"
    # debugpy is not done with this one until there is the file `end`, which is written after the answer
    expression = (f"open({str(began)!r}, 'w').close(), "
                  f"list(iter(lambda: __import__('time').sleep(0.02) or __import__('os').path.exists({str(end)!r}), True))")
    answer = stopped.begin("evaluate", expression=expression, frameId=stopped.stack(1)[2]["id"], context="repl")
    number = stopped._seq
    while not began.exists():
        time.sleep(0.01)
    stopped.request("cancel", requestId=number)
    result = answer.get(timeout=20)
    end.touch()
    assert result["success"] is False and result["message"] == "cancelled"
    stopped.request("cancel", requestId=999_999)
