"""Whole conversations about how a program is reached: in a terminal of the client's, as a child, as a rank, by process id, at a port."""
import os
import re
import subprocess
import sys
import threading

import debugpy
import golden
import pytest
from harness import PROGRAMS, environment, line_of

FAKE = PROGRAMS / "fake_debuggee.py"
CHILDREN = PROGRAMS / "children.py"
REAL = PROGRAMS / "real.py"
PATHS = {str(PROGRAMS): "<programs>", sys.executable: "<python>", os.path.dirname(debugpy.__file__): "<debugpy>"}


def check(session, name):
    """Up to the session's end."""
    text = golden.conversation(session.log_file, PATHS, "disconnect", ("breakpoint",))
    # Whether the tensor engine has come before a program's breakpoints are set is a matter of the moment: it is told by events else.
    golden.check(name, re.sub(r'(← setBreakpoints .*)"message": "tensor line: [^"]*", ', r"\1", text))


def test_a_program_in_a_terminal_of_the_client(session):
    started = []

    def run(request):
        asked = request["arguments"]
        started.append(subprocess.Popen(asked["args"], cwd=asked["cwd"], env={**environment(), **asked["env"]}, stdout=subprocess.PIPE,
                                        text=True))
        return {"processId": started[0].pid}

    session.reverse = run
    line = line_of(FAKE, "h = x * 2")
    session.start(FAKE, args=["1"], console="integratedTerminal", client_args={"supportsRunInTerminalRequest": True},
                  at=lambda client: client.set_breakpoints(str(FAKE), [line]))
    session.stopped(reason="breakpoint")
    session.go_on()
    session.run_out()
    assert started[0].communicate(timeout=20)[0] == "total 3\n"
    check(session, "terminal")


@pytest.mark.parametrize(("number", "name"), [([], "child"), (["1"], "rank")])
def test_a_child_and_a_rank_of_a_job_in_sessions_of_their_own(adapter, number, name):
    root, child, asked, done = adapter(), adapter(), [], threading.Event()

    def reverse(request):
        asked.append(request["arguments"])
        done.set()
        return {}

    root.reverse = reverse
    root.start(CHILDREN, args=number, subProcess=True, dvm={"hotReload": "off"}, client_args={"supportsStartDebuggingRequest": True})
    assert done.wait(60)
    child.attach(CHILDREN, line_of(CHILDREN, "h = x * 2"), **asked[0]["configuration"])
    thread = child.stopped(reason="breakpoint")["threadId"]
    child.stack(thread, startFrame=0, levels=3)
    child.go_on(thread)
    child.run_out()
    root.run_out()
    check(child, f"{name}_itself")
    check(root, f"{name}_parent")


@pytest.mark.parametrize("how", ["process", "port"])
def test_a_program_that_runs_is_entered_stopped_and_left(adapter, how):
    pytest.importorskip("dvm_core._core")
    program = subprocess.Popen([sys.executable, str(REAL), "100000", "0.01", "1.0", *(["--listen"] if how == "port" else [])],
                               stdout=subprocess.PIPE, text=True, env=environment())
    try:
        first = program.stdout.readline().split()
        threading.Thread(target=program.stdout.read, daemon=True).start()
        session = adapter()
        where = {"processId": program.pid} if how == "process" else {"connect": {"host": "127.0.0.1", "port": int(first[1])}}
        line = line_of(REAL, "s = h + scale")
        session.attach(REAL, line, dvm={"hotReload": "off"}, **where)
        frame = session.stopped(reason="breakpoint") and session.stack(1)[0]["id"]
        session.variables(session.scopes(frame)["Tensors"]["variablesReference"])
        session.refusal("restart")
        session.close(terminate=False)
        assert program.poll() is None
        check(session, f"attach_{how}")
    finally:
        program.kill()
        program.communicate()
