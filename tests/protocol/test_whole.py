"""The adapter with the real tensor engine: one session from a breakpoint to a reload."""
import base64
import hashlib
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import some
from dvm_adapter import addresses
from harness import PROGRAMS, environment, line_of

numpy = pytest.importorskip("numpy")
pytest.importorskip("dvm_core._core")

REAL = PROGRAMS / "real.py"
X = numpy.linspace(0.5, 2, 32, dtype=numpy.float32).reshape(8, 4)
W = numpy.linspace(1, 2, 32, dtype=numpy.float32).reshape(8, 4)


@pytest.fixture
def program(tmp_path):
    """A copy to edit."""
    return shutil.copy(REAL, tmp_path / "loop.py")


def tensors(session, frame):
    return {v["name"]: v for v in session.variables(session.scopes(frame)["Tensors"]["variablesReference"])}


def steps_printed(session):
    return [line.split() for line in session.printed().splitlines() if line.startswith("step")]


def wait_for(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_capture_all_sends_every_instructions_result_of_each_nth_launch(session, program):
    session.start(program, args=["5", "0.01"], dvm={"hotReload": "off", "capture": "all", "sampleEvery": 2})
    session.event("terminated")
    told = list(session.seen("dvm/snapshot"))
    assert {body["watchId"] for body in told} == {None}
    # steps that end while the program does may be lost with it; those before have long been sent
    steps = sorted({body["step"] for body in told})
    assert steps in ([1, 3], [1, 3, 5])
    names = [body["name"] for body in told if body["step"] == 1]
    assert (names[0], names[1], names[-1], len(names)) == ("h", "s", "y", 4)
    first = next(body for body in told if body["name"] == "h")
    assert (numpy.frombuffer(base64.b64decode(first["data"]), numpy.float32).reshape(8, 4) == X * W).all()


def test_a_stop_inside_a_captured_function_shows_what_is_computed_so_far(session, program):
    line = line_of(program, "s = h + scale")
    session.start(program, args=["2", "0"], at=lambda client: client.set_breakpoints(str(program), [line]))
    session.stopped(reason="breakpoint", hitBreakpointIds=[1])
    frames = session.stack(1)
    assert [f["name"] for f in frames[:4]] == ["s = h + scale", "── Python ──", "forward", "train"]
    assert frames[0]["line"] == frames[2]["line"] == line
    shown = tensors(session, frames[0]["id"])
    assert shown["h"]["value"] == some.containing("f32[8,4]") and "not yet" not in shown["h"]["value"]
    reference = shown["h"]["memoryReference"]
    parts = [session.request("readMemory", memoryReference=reference, offset=offset, count=50) for offset in (0, 50, 100)]
    data = b"".join(base64.b64decode(part["data"]) for part in parts)
    assert (numpy.frombuffer(data, numpy.float32).reshape(8, 4) == X * W).all()
    values = session.variables(shown["h"]["variablesReference"])[5]
    rows = session.variables(values["variablesReference"], filter="indexed", start=7, count=1)
    cells = session.variables(rows[0]["variablesReference"], filter="indexed", start=3, count=1)
    assert float(cells[0]["value"]) == float((X * W)[7, 3])
    watched = session.request("evaluate", expression="h[7, 3]", frameId=frames[0]["id"], context="watch")
    assert float(watched["result"]) == float((X * W)[7, 3])
    # the last line of the function: everything but it is there
    session.request("next", threadId=1)
    session.stopped(reason="step")
    frames = session.stack(1)
    assert frames[0]["line"] == line + 1
    assert "not yet" not in tensors(session, frames[0]["id"])["s"]["value"]
    session.set_breakpoints(str(program), [])
    session.go_on()
    session.run_out()
    expected = (numpy.log(X * W + 1) / 2).mean()
    assert [float(words[3]) for words in steps_printed(session)] == pytest.approx([expected] * 2, abs=1e-5)


def test_arguments_are_shown_before_the_first_line_has_used_them(session, program):
    session.start(program, args=["1", "0"], at=lambda client: client.set_breakpoints(str(program), [line_of(program, "h = x * w")]))
    session.stopped(reason="breakpoint")
    frame = session.stack(1)[0]["id"]
    shown = tensors(session, frame)
    assert shown["x"]["value"] == some.containing("f32[8,4]  min 0.5  max 2") and shown["w"]["value"] == some.containing("min 1")
    assert float(session.request("evaluate", expression="w[7, 3]", frameId=frame, context="watch")["result"]) == float(W[7, 3])
    session.go_on()
    session.run_out()


def test_an_instruction_of_the_programs_view_is_stopped_at(session, program):
    session.start(program, args=["1000", "0.02"])
    wait_for(lambda: len(steps_printed(session)) > 2)
    (listed,) = session.request("dvm/programs")["programs"]
    number = listed["id"]
    areas = session.request("dvm/program", id=number, level="areas")["areas"]
    assert areas[0]["reason"] and areas[0]["instructions"] >= 2
    row = session.request("dvm/program", id=number, level="areas", area=0, offset=1, count=1)["instructions"][0]
    assert row["breakpoint"] is False
    answer = session.request("dvm/breakInstruction", program=number, instruction=row["index"])
    assert answer["breakpoints"] == [{"program": number, "instruction": row["index"]}]
    session.request("setInstructionBreakpoints", breakpoints=[])  # the Disassembly view's list is another one
    thread = session.stopped(reason="instruction breakpoint")["threadId"]
    assert session.stack(thread)[0]["instructionPointerReference"] == "0x" + format((number << 32) + (1 << 31) + row["index"], "016x")
    assert session.request("dvm/program", id=number, level="areas", area=0, offset=1, count=1)["instructions"][0]["breakpoint"] is True
    assert "there is no instruction 999" in session.refusal("dvm/breakInstruction", program=number, instruction=999)
    assert session.request("dvm/breakInstruction", program=number, instruction=row["index"], on=False)["breakpoints"] == []
    before = len(steps_printed(session))
    session.go_on()
    wait_for(lambda: len(steps_printed(session)) > before + 3)
    found = session.request("dvm/line", path=str(program), line=row["line"])["programs"]
    assert [p["id"] for p in found] == [number] and row["index"] in found[0]["found"]
    assert "must be a whole number" in session.refusal("dvm/line", path=str(program), line="x")


def test_instructions_are_listed_stopped_at_and_stepped(session, program):
    session.start(program, args=["1000", "0.02"])
    wait_for(lambda: len(steps_printed(session)) > 2)
    (listed,) = session.request("dvm/programs")["programs"]
    reference = "0x" + format((listed["id"] << 32) + (1 << 31), "016x")
    lines = session.request("disassemble", memoryReference=reference, instructionOffset=-1,
                            instructionCount=listed["instructions"] + 2)["instructions"]
    assert len(lines) == listed["instructions"] + 2
    assert [line.get("presentationHint") for line in lines] == ["invalid"] + [None] * listed["instructions"] + ["invalid"]
    second = lines[2]
    (answer,) = session.request("setInstructionBreakpoints", breakpoints=[{"instructionReference": second["address"]}])["breakpoints"]
    assert answer["verified"]
    thread = session.stopped(reason="instruction breakpoint", hitBreakpointIds=[answer["id"]])["threadId"]
    frame = session.stack(thread)[0]
    assert frame["instructionPointerReference"] == second["address"]
    session.request("next", threadId=thread, granularity="instruction")
    session.stopped(reason="step")
    assert session.stack(thread)[0]["instructionPointerReference"] == lines[3]["address"]
    session.request("setInstructionBreakpoints", breakpoints=[])
    for _ in range(listed["instructions"]):  # over the end of the launch, into Python
        session.request("next", threadId=thread, granularity="instruction")
        session.stopped(reason="step")
        if "instructionPointerReference" not in session.stack(thread)[0]:
            break
    assert session.stack(thread)[0]["name"] in ("forward", "train")
    before = len(steps_printed(session))
    session.go_on(thread)
    wait_for(lambda: len(steps_printed(session)) > before + 2)
    assert {words[3] for words in steps_printed(session)} == {steps_printed(session)[0][3]}  # not a bit changed by any of it


def test_the_first_nan_stops_the_program_and_says_where(session, program):
    session.start(program, args=["2", "0", "-1.5"], at=lambda client: client.request("setExceptionBreakpoints", filters=["nan"]))
    body = session.stopped(reason="exception")
    assert "NaN" in body["description"] and body["text"]
    frames = session.stack(body["threadId"])
    assert frames[0]["line"] == line_of(program, "s.log()")
    assert session.request("exceptionInfo", threadId=body["threadId"])["exceptionId"] == "NaN"
    shown = tensors(session, frames[0]["id"])
    assert float(session.request("evaluate", expression="s.min()", frameId=frames[0]["id"], context="repl")["result"]) < 0
    assert "s" in shown
    session.request("setExceptionBreakpoints", filters=[])
    session.go_on(body["threadId"])
    session.run_out()


def test_numeric_filters_take_conditions(session, program):
    def configure(client):
        options = [{"filterId": "range", "condition": "op == 'LOG' and max > 0.5"}, {"filterId": "uncaught"}]
        body = client.request("setExceptionBreakpoints", filters=[], filterOptions=options)
        assert [b["verified"] for b in body["breakpoints"]] == [True, True]

    session.start(program, args=["2", "0"], at=configure)
    body = session.stopped(reason="exception")
    assert body["text"].startswith("range: LOG made ")
    assert session.request("exceptionInfo", threadId=body["threadId"])["exceptionId"] == "OutOfRange"
    refused = session.request("setExceptionBreakpoints", filters=["zeros"], filterOptions=[{"filterId": "range", "condition": "nope > 1"}])
    failed = {"verified": False, "reason": "failed", "message": some.containing("no `nope` here")}
    assert refused["breakpoints"] == [{"verified": True}, failed]
    session.request("setExceptionBreakpoints", filters=[])
    session.go_on(body["threadId"])
    session.run_out()


def test_a_watch_follows_a_value_that_is_fused_away(session, program):
    session.start(program, args=["1000", "0.02"], at=lambda client: client.request("dvm/watch", expression="h", name="hidden"))
    for _ in range(3):
        body = session.event("dvm/snapshot")["body"]
        assert body["name"] == "hidden" and body["stats"]["max"] == pytest.approx(float((X * W).max()))


def test_a_program_whose_files_are_called_otherwise_is_stopped_in_watched_and_edited(session, program, tmp_path):
    """`pathMappings`, as of a container: the client has its own copy of the source, and hears of no other path."""
    (tmp_path / "mine").mkdir()
    mine = str(shutil.copy(program, tmp_path / "mine" / "loop.py"))
    line = line_of(mine, "s = h + scale")

    def configure(client):
        client.set_breakpoints(mine, [{"line": line, "mode": "both"}])
        client.request("dvm/watch", expression="h", path=mine, line=line - 1)

    session.start(program, args=["100000", "0.01"], at=configure, cwd=str(tmp_path), dvm={"hotReload": "off"},
                  pathMappings=[{"localRoot": str(tmp_path / "mine") + "/", "remoteRoot": "."}])
    session.stopped(reason="breakpoint", hitBreakpointIds=[1])
    frames = session.stack(1)
    assert [(f["name"], f["source"]["path"]) for f in (frames[0], frames[2])] == [("s = h + scale", mine), ("forward", mine)]
    assert [told["file"] for told in session.request("dvm/line", path=mine, line=line - 1)["programs"]] == [mine]
    session.set_breakpoints(mine, [])
    session.go_on()
    session.event("dvm/snapshot", where=lambda body: body["name"] == "h")
    Path(program).write_text(Path(program).read_text().replace("/ 2", "/ 4"))
    answer = session.request("dvm/reload", path=mine)
    assert (answer["outcome"], answer["path"]) == ("applied", mine)
    assert {body["path"] for body in session.seen("dvm/reload")} == {mine}


def test_a_program_starts_anew_from_its_saved_file_on_another_device(session, program):
    """Breakpoint and watch stay; the configuration that comes with the request holds, and steps count from one."""
    def configure(client):
        client.set_breakpoints(str(program), [line_of(program, "y = s.log()")])
        client.request("dvm/watch", expression="h", name="hidden")

    session.start(program, args=["3", "0"], at=configure, dvm={"hotReload": "off"})
    session.stopped()
    Path(program).write_text(Path(program).read_text().replace("h = x * w", "h = x * w * 2"))
    device = {"device": "npu-sim:910b", "hotReload": "off"}
    session.request("restart", arguments={"program": str(program), "args": ["5", "0"], "dvm": device})
    session.stopped(reason="breakpoint", hitBreakpointIds=[1])
    frame = session.stack(1)[0]["id"]
    assert float(session.request("evaluate", expression="h[7, 3]", frameId=frame, context="watch")["result"]) == float((X * W * 2)[7, 3])
    assert session.request("dvm/status")["device"] == "npu-sim:910b"
    session.set_breakpoints(str(program), [])
    session.go_on()
    body = session.event("dvm/snapshot", where=lambda body: body["step"] == 1 and body["stats"]["max"] > 5)["body"]
    assert body["watchId"] == 1 and body["name"] == "hidden" and body["stats"]["max"] == float((X * W * 2).max())
    session.run_out()
    assert [line[1] for line in steps_printed(session)][-5:] == ["1", "2", "3", "4", "5"]


def test_a_page_sees_kept_snapshots_of_a_running_loop_and_a_stop(session, program, tmp_path):
    line = line_of(program, "y = s.log()")
    watched = []
    session.start(program, args=["100000", "0.005"], dvm={"snapshotTimeoutMs": 60_000}, at=lambda client: watched.extend(
        client.request("dvm/watch", expression=name, **more)["watchId"] for name, more in (
            ("h", {"what": "values", "keep": 8}), ("s", {"together": True}), ("y", {"together": True}))))
    assert "data" not in session.event("dvm/snapshot")["body"]
    together = session.event("dvm/snapshots", where=lambda body: len(body["snapshots"]) > 2)["body"]["snapshots"]
    assert {body["watchId"] for body in together} == set(watched[1:]) and all("stats" in body for body in together)
    named = {"watchId": watched[0]}
    told = session.request("dvm/view", **named, most=[4, 2])
    assert (told["plane"]["height"], told["plane"]["width"]) == (4, 2)
    cells = numpy.frombuffer(base64.b64decode(told["plane"]["data"]), numpy.float32).reshape(4, 2)
    assert (cells == (X * W).reshape(4, 2, 2, 2).max((1, 3))).all()  # all are positive
    assert session.request("dvm/viewStats", **named)["stats"]["max"] == pytest.approx(float((X * W).max()))
    wait_for(lambda: len(session.request("dvm/view", **named)["kept"]) == 8)
    first = session.request("dvm/view", **named)["kept"][-1]["snapshot"]
    assert session.request("dvm/compare", a=named, b={**named, "snapshot": first})["differ"] == 0
    written = session.request("dvm/export", format="npy", path=str(tmp_path / "h.npy"), **named)
    assert written["bytes"] and (numpy.load(tmp_path / "h.npy") == X * W).all()
    assert base64.b64decode(session.request("dvm/tensor", **named)["data"]) == (X * W).tobytes()
    session.set_breakpoints(program, [line])
    session.stopped(reason="breakpoint")
    at_stop = session.request("dvm/view", expression="s", texts=True, rows=[1, 2])
    assert [float(t) for t in at_stop["texts"]] == pytest.approx([*(X * W + 1)[1]]) and "kept" not in at_stop
    assert session.request("dvm/compare", a={"expression": "s"}, b=named)["largest"]["value"] == pytest.approx(1)
    assert session.refusal("dvm/compare", a=named) == 'dvm/compare without "b": an object that names a tensor'
    assert "no snapshots" in session.refusal("dvm/view", watchId=session.request("dvm/watch", expression="s")["watchId"])


def test_a_save_is_in_force_at_the_next_call_and_the_loop_goes_on(session, program):
    session.start(program, args=["100000", "0.01"])
    wait_for(lambda: len(steps_printed(session)) > 5 and session.request("dvm/status")["connected"])
    time.sleep(1)  # the list of sources to watch is made after the agent has come
    text = open(program).read()
    with open(program, "w") as file:
        file.write(text.replace("s.log() / 2", "s.log() / 4"))
    report = session.event("dvm/reload")["body"]
    assert report["outcome"] == "applied", report
    wait_for(lambda: float(steps_printed(session)[-1][3]) == pytest.approx((numpy.log(X * W + 1) / 4).mean(), abs=1e-5))
    numbers = [int(words[1]) for words in steps_printed(session)]
    assert numbers == list(range(1, len(numbers) + 1))
    with open(program, "w") as file:
        file.write(text.replace("s.log() / 2", "s.log() / ("))
    report = session.event("dvm/reload")["body"]
    assert report["outcome"] == "refused" and "loop.py" in report["reasons"][0]
    assert session.request("dvm/undoReload")["outcome"] == "applied"
    wait_for(lambda: float(steps_printed(session)[-1][3]) == pytest.approx((numpy.log(X * W + 1) / 2).mean(), abs=1e-5))


def test_a_call_on_the_stack_shows_the_text_it_was_compiled_from(session, program):
    before = Path(program).read_text()
    line = line_of(program, "s = h + scale")
    session.start(program, args=["100000", "0.01"], at=lambda client: client.request(
        "setBreakpoints", source={"path": str(program)}, breakpoints=[{"line": line}]))
    session.stopped(reason="breakpoint")
    session.request("setBreakpoints", source={"path": str(program)}, breakpoints=[])
    frames = session.request("stackTrace", threadId=1)["stackFrames"]
    assert not any((frame.get("source") or {}).get("sourceReference") for frame in frames)
    after = before.replace("@dvm.jit", "# moved\n\n\n@dvm.jit").replace("s.log() / 2", "s.log() / 4")
    Path(program).write_text(after)
    assert session.request("dvm/reload", path=str(program))["pending"]
    session.go_on()
    wait_for(lambda: any(body["outcome"] == "applied" and not body.get("pending") for body in session.seen("dvm/reload")))
    quarter = pytest.approx((numpy.log(X * W + 1) / 4).mean(), abs=1e-5)
    wait_for(lambda: steps_printed(session) and float(steps_printed(session)[-1][3]) == quarter)
    session.request("setBreakpoints", source={"path": str(program)}, breakpoints=[{"line": line_of(program, "s = h + scale")}])
    session.stopped(reason="breakpoint")
    frames = [frame for frame in session.request("stackTrace", threadId=1)["stackFrames"] if (frame.get("source") or {}).get("path")]
    inner = [frame for frame in frames if frame["line"] == line_of(program, "s = h + scale")]
    assert inner and not any(frame["source"].get("sourceReference") for frame in inner)  # it began after the swap
    outer = {frame["name"]: frame["source"] for frame in frames if frame not in inner}
    assert set(outer) == {"train", "<module>"}, frames
    assert outer["train"]["sourceReference"] == outer["<module>"]["sourceReference"]  # one text
    assert outer["train"]["checksums"] == [{"algorithm": "SHA256", "checksum": hashlib.sha256(before.encode()).hexdigest()}]
    assert session.request("source", source=outer["train"], sourceReference=outer["train"]["sourceReference"])["content"] == before


def test_breakpoints_and_frames_of_a_refused_save_are_where_the_running_text_has_them(session, program):
    before = Path(program).read_text()
    inside = "s = h + scale"

    def breakpoint_at(text, **modified):
        return session.request("setBreakpoints", source={"path": str(program)}, breakpoints=[{"line": line_of(program, text)}], **modified)

    session.start(program, args=["100000", "0.01"], at=lambda client: breakpoint_at(inside))
    session.stopped(reason="breakpoint")
    refused = before.replace("@dvm.jit", "# one\n# two\n\n\n@dvm.jit").replace("y = s.log()", "new = s\n    y = s.log()")
    Path(program).write_text(refused.replace("def forward(x, w, scale):", "def forward(x, w, scale, more):"))
    assert session.request("dvm/reload", path=str(program))["outcome"] == "refused"
    moved = breakpoint_at(inside, sourceModified=True)["breakpoints"][0]
    assert moved["verified"] and moved["line"] == line_of(program, inside)
    top = session.request("stackTrace", threadId=1)["stackFrames"]
    assert {frame["line"] for frame in top if "forward" in frame["name"] or frame["name"].startswith("s =")} == {line_of(program, inside)}
    for _ in range(2):
        session.go_on()
        session.stopped(reason="breakpoint")
        frame = session.request("stackTrace", threadId=1)["stackFrames"][0]
        assert (frame["line"], frame["source"]["path"]) == (line_of(program, inside), str(program))
    gone = breakpoint_at("new = s", sourceModified=True)["breakpoints"][0]
    assert not gone["verified"] and "does not have this line" in gone["message"]
    Path(program).write_text(before)
    assert session.request("dvm/reload", path=str(program))["outcome"] == "unchanged"
    assert breakpoint_at(inside, sourceModified=True)["breakpoints"][0]["verified"]
    session.go_on()
    session.stopped(reason="breakpoint")
    assert session.request("stackTrace", threadId=1)["stackFrames"][0]["line"] == line_of(program, inside)


def test_memory_and_programs_of_a_running_loop(session, program, tmp_path):
    session.start(program, args=["1000", "0.01"])
    wait_for(lambda: len(steps_printed(session)) > 2)
    session.request("dvm/memory")
    before = len(steps_printed(session))
    wait_for(lambda: len(steps_printed(session)) > before + 5)
    body = session.request("dvm/memory", html=str(tmp_path / "memory.html"))
    assert body["buffers"] and body["peak"]["bytes"] > 0 and (tmp_path / "memory.html").stat().st_size == body["htmlBytes"]
    number = session.request("dvm/programs")["programs"][0]["id"]
    for level in ("graph", "tensor", "tile"):
        assert session.request("dvm/program", id=number, level=level)["text"].strip()
    written = session.request("dvm/export", format="msbc", program=number, path=str(tmp_path / "loop.msbc"))
    assert (tmp_path / "loop.msbc").read_bytes()[:4] == b"MSBC" and written["bytes"] > 32


def test_attach_brings_the_tensor_engine_and_detach_leaves_the_loop_running(adapter, program):
    process = subprocess.Popen([sys.executable, program, "1000", "0.02", "1.0", "--listen"], env=environment(), stdout=subprocess.PIPE,
                               text=True)
    try:
        port = int(process.stdout.readline().split()[1])
        session = adapter()
        session.attach(program, line_of(program, "s = h + scale"), connect={"host": "127.0.0.1", "port": port})
        for _ in range(2):
            session.stopped(reason="breakpoint")
            frames = session.stack(1)
            assert frames[0]["name"] == "s = h + scale"
            session.go_on()
        session.stopped()
        session.close(terminate=False)
        for _ in range(5):
            assert process.stdout.readline().startswith("step")
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_the_memory_view_zooms_and_follows_a_buffer(session, program):
    session.start(program, args=["1000", "0.01"])
    wait_for(lambda: len(steps_printed(session)) > 2)
    session.request("dvm/memory")
    before = len(steps_printed(session))
    wait_for(lambda: len(steps_printed(session)) > before + 5)
    whole = session.request("dvm/memoryView", fresh=True)
    assert whole["buffers"] and whole["peak"]["bytes"] == max(map(sum, zip(*whole["bytes"], strict=True)))
    start, end = whole["whole"]
    part = session.request("dvm/memoryView", **{"from": (start + end) // 2})
    assert part["range"] == [(start + end) // 2, end] and part["count"] <= whole["count"]
    made = [b for b in whole["buffers"] if b.get("instruction", -1) > 0 and b["freed"]]
    told = [session.request("dvm/memoryView", select=b["id"])["selected"] for b in made[:8]]
    assert all(t["op"] for t in told) and any(t["before"] or t["after"] for t in told)
    assert "must be a count of instructions" in session.refusal("dvm/memoryView", **{"from": "x"})
    assert "no buffer 99999999" in session.refusal("dvm/memoryView", select=99999999)


def test_the_disassembly_view_goes_into_a_tile_and_out_again(session, program):
    session.start(program, args=["1000", "0.02"])
    wait_for(lambda: len(steps_printed(session)) > 1)
    number = session.request("dvm/programs")["programs"][0]["id"]
    first = addresses.tile_address(number, 0, 0)
    code = session.request("disassemble", memoryReference=first, instructionOffset=-2, instructionCount=9)["instructions"]
    listed = [line for line in code if line.get("presentationHint") != "invalid"]
    assert len(code) == 9 and [line["address"] for line in code] == sorted({line["address"] for line in code})
    assert listed[0] == {"address": first, "instruction": some.containing("."), "symbol": "area 0", "line": line_of(program, "h = x * w"),
                         "location": {"name": "loop.py", "path": str(program)}}
    asked = [{"instructionReference": first, "offset": 1}, {"instructionReference": first, "offset": 999}]
    answers = session.request("setInstructionBreakpoints", breakpoints=asked)["breakpoints"]
    assert [a["verified"] for a in answers] == [True, False] and "no tile instruction 999" in answers[1]["message"]
    body = session.stopped(reason="instruction breakpoint", hitBreakpointIds=[answers[0]["id"]])
    thread = body["threadId"]
    top = session.stack(thread)[0]
    assert "tile 1 of 1" in top["name"] and int(top["instructionPointerReference"], 16) >= int(first, 16)
    scopes = session.scopes(top["id"])
    assert scopes["Local memory"]["presentationHint"] == "registers"
    session.request("setInstructionBreakpoints", breakpoints=[])
    session.request("next", threadId=thread, granularity="instruction")
    session.stopped(reason="step")
    made = session.variables(session.scopes(session.stack(thread)[0]["id"])["Local memory"]["variablesReference"])
    assert made and all(numpy.prod(eval(variable["type"].partition("[")[2].rstrip("]").replace(",", "*"))) <= 32 for variable in made)
    session.request("stepIn", threadId=thread, granularity="tile")
    session.stopped(reason="step")
    before = len(steps_printed(session))
    session.go_on(thread)
    wait_for(lambda: len(steps_printed(session)) > before + 2)
    assert {words[3] for words in steps_printed(session)} == {steps_printed(session)[0][3]}


def test_a_tile_step_that_is_refused_leaves_what_the_client_holds(session, program):
    session.start(program, args=["3", "0"], at=lambda client: client.set_breakpoints(str(program), [line_of(program, "s = h + scale")]))
    thread = session.stopped()["threadId"]
    frame = session.stack(thread)[0]["id"]
    held = session.scopes(frame)["Tensors"]["variablesReference"]
    before = [(variable["name"], variable["value"]) for variable in session.variables(held)]
    assert "no fused area begins here" in session.refusal("stepIn", threadId=thread, granularity="tile")
    assert [(variable["name"], variable["value"]) for variable in session.variables(held)] == before and session.scopes(frame)["Tensors"]
    session.request("next", threadId=thread)
    session.stopped(reason="step")
    assert "earlier stop" in session.refusal("variables", variablesReference=held)


def test_what_is_set_while_the_program_starts_anew_is_in_force(session, program):
    session.start(program, args=["1000", "0.02"], at=lambda client: client.set_breakpoints(__file__, [1]))
    wait_for(lambda: steps_printed(session))
    anew = session.begin("restart")
    line = line_of(program, "s = h + scale")
    (answer,) = session.set_breakpoints(str(program), [line])
    assert anew.get(timeout=60)["success"]
    thread = session.stopped(hitBreakpointIds=[answer["id"]])["threadId"]
    assert session.stack(thread)[0]["line"] == line
