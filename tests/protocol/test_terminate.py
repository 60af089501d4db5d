"""Stop, pressed once: Ctrl-C in the program, wherever it stands, at which a training saves what it has. Pressed twice: its end."""
import pytest
from harness import PROGRAMS, line_of

LONG = 60  # seconds: on hanging, not on speed
SAVES = """import time
try:
    print("up", flush=True)
    while True:
        time.sleep(0.01)  # here
finally:
    print("saved", flush=True)
"""
GOES_ON = """import time
while True:
    try:
        print("up", flush=True)
        while True:
            time.sleep(0.01)
    except KeyboardInterrupt:
        print("again", flush=True)
"""


def printed(session, word):
    session.event("output", timeout=LONG, where=lambda body: word in body["output"])


def ended(session):
    session.request("terminate", timeout=LONG)
    session.event("terminated", timeout=LONG)


@pytest.mark.parametrize("stands", [False, True])
def test_a_program_saves_before_it_ends_and_stops_at_nothing_on_its_way(session, tmp_path, stands):
    (script := tmp_path / "saves.py").write_text(SAVES)

    def configure(client):
        client.request("setExceptionBreakpoints", filters=["uncaught"])
        client.set_breakpoints(str(script), [line_of(script, "# here")] if stands else [])

    session.launch(configure, program=str(script))
    printed(session, "up")
    if stands:
        session.stopped(reason="breakpoint")
    ended(session)
    assert session.printed() == "up\nsaved\n"
    assert [body["reason"] for body in session.seen("stopped")] == ["breakpoint"] * stands
    assert len(list(session.seen("continued"))) == stands


def test_a_program_that_stands_inside_a_launch_ends_as_others_do(session, tmp_path):
    pytest.importorskip("dvm_core._core")
    (program := tmp_path / "loop.py").write_text("import atexit\natexit.register(print, 'saved')\n" + (PROGRAMS / "real.py").read_text())
    session.start(program, args=["100000", "0.01"])
    printed(session, "step 2 ")
    number = session.request("dvm/programs")["programs"][0]["id"]
    session.request("setInstructionBreakpoints", breakpoints=[{"instructionReference": f"0x{(number << 32) + (1 << 31) + 1:016x}"}])
    session.stopped(reason="instruction breakpoint")
    ended(session)
    assert "saved" in session.printed()


def test_what_goes_on_after_the_first_is_ended_by_the_second(session, tmp_path):
    (script := tmp_path / "goes_on.py").write_text(GOES_ON)
    session.launch(program=str(script))
    printed(session, "up")
    session.request("terminate", timeout=LONG)
    printed(session, "again")
    assert session.request("threads")["threads"]
    ended(session)
