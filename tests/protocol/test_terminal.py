"""`dvm debug`: the terminal client, driven by a pipe as a script drives it. The adapter, debugpy and the programs are real."""
import contextlib
import json
import os
import pty
import select
import signal
import subprocess
import sys
import uuid

import psutil
import pytest
from harness import BOUND, PROGRAMS, Terminal, environment, family, gone, line_of

FAKE, REAL = PROGRAMS / "fake_debuggee.py", PROGRAMS / "real.py"
H, S, Y = (line_of(REAL, text) for text in ("h = x * w", "s = h + scale", "y = s.log()"))


@pytest.fixture
def run():
    """Starts sessions; whatever a failed test leaves is ended."""
    made = []

    def start(*arguments, **more):
        made.append(Terminal(*arguments, **more))
        return made[-1]

    yield start
    for one in made:
        for process in family(one.mark):
            process.kill()


@pytest.fixture
def session(run):
    """Runs a whole script of commands: what was said, by command, and the exit code."""

    def whole(commands, *arguments, **more):
        one = run(*arguments, **more)
        one.type(*commands)
        code = one.end()
        said, current = [], []
        for line in one.lines:
            if line.startswith("(dvm) "):
                current = []
                said.append(current)
            else:
                current.append(line)
        return said, code

    return whole


def engine():
    pytest.importorskip("numpy")
    pytest.importorskip("dvm_core._core")


def test_a_tensor_line_is_looked_at_from_all_sides(session, tmp_path):
    engine()
    commands = [f"break real.py:{S}", "run", "where", "print h", "p h[7, 3]", "frame 2", "p number", "locals", "tensors", "list", "dis",
                "programs", "memory", f"export perfetto {tmp_path / 'a b.json'}", "export csv x", "device",
                "next", "clear 1", "breakpoints", "continue"]
    said, code = session(commands, REAL, 2, 0)
    told = dict(zip(commands, said))  # noqa: B905 - the end of the program is the end of the session
    assert code == 0 and len(said) == len(commands)
    assert told[commands[0]][0].startswith(f"breakpoint 1 at real.py:{S}")
    stop = told["run"]
    at = stop.index("Paused on tensor line (breakpoint 1)")
    assert stop[at + 1].split() == ["▸", "s", "=", "h", "+", "scale", f"real.py:{S}"]
    assert stop[at + 2].startswith("    h  f32[8,4]  min 0.5  max 4")
    stack = told["where"]
    assert [line.split()[-1] for line in stack[:4]] == [f"real.py:{S}", "──", f"real.py:{S}", f"real.py:{line_of(REAL, 'y = forward(')}"]
    assert "▸  0 s = h + scale" in stack[0] and "── Python ──" in stack[1]
    assert told["print h"][0].startswith("f32[8,4]") and told["print h"][1].startswith("  statistics  min 0.5")
    assert told["print h"][-2].split()[0] == "7" and told["print h"][-1] == f"  made at  real.py:{H}  forward"
    assert float(told["p h[7, 3]"][0]) == 4
    assert told["p number"] == ["1"] and "  number = 1" in told["locals"]
    assert [line.split()[0] for line in told["tensors"]][0] == "h"
    assert any(line.startswith("▸") for line in told["list"]) and any("MUL" in line for line in told["dis"])
    assert "forward" in told["programs"][0] and "1 areas" not in told["programs"][0] and "1 launches" not in told["programs"][0]
    assert any(line.startswith("alive at the peak, ") for line in told["memory"])
    assert len(set(told["memory"])) == len(told["memory"]) and any(line.endswith(f"real.py:{H}") for line in told["memory"])
    exported = next(said for command, said in told.items() if command.startswith("export perfetto"))
    assert exported[0].startswith(f"{tmp_path / 'a b.json'}: ") and json.loads((tmp_path / "a b.json").read_text())["traceEvents"]
    assert told["export csv x"] == ["error: export torch-snapshot|perfetto|html FILE"]
    assert "peak" in told["memory"][0] and told["device"][0].startswith("cpu; there are cpu, ")
    assert any(line.split()[-1:] == [f"real.py:{Y}"] for line in told["next"])
    assert told["clear 1"] == ["1 cleared"] and told["breakpoints"] == ["filter uncaught"]
    assert [line for line in told["continue"] if line.startswith("step")][-1].startswith("step 2")
    assert told["continue"][-1] == "the program ended with exit code 0"


def test_a_filter_stops_by_its_condition(session):
    engine()
    commands = ["filter range abs_max > 4.5", "filter", "run", "print s", "filter range no_such > 1", "unfilter range", "run"]
    said, code = session(commands, REAL, 2, 0)
    assert said[0] == ["filter range abs_max > 4.5"] and ["range", "on", "abs_max", ">", "4.5"] in [line.split() for line in said[1]]
    assert any("value out of range" in line and "made s" in line for line in said[2])
    assert "max 5" in said[3][0]
    assert len(said[4]) == 1 and said[4][0].startswith("error: ") and "no_such" in said[4][0]
    assert said[6][-1] == "the program ended with exit code 0" and code == 0


def test_a_watch_keeps_the_latest_statistics(session):
    engine()
    point = f"break {line_of(REAL, 'time.sleep(pause)')} if number == 6"
    said, code = session(["watch h every 2", "watches", point, "run", "watches", "unwatch 1", "watches", "unwatch 1", "quit", "next"],
                         REAL, 8, 0.02)
    assert said[0][0].startswith("watch 1: h") and said[1] == [" 1  h every 2  no value yet"]
    assert said[4][0].startswith(" 1  h every 2  f32[8,4]  min 0.5  max 4  mean 2.01") and said[4][0].split()[-2] == "step"
    assert int(said[4][0].split()[-1]) in (1, 3, 5)
    assert said[6] == ["none"] and said[7] == ["error: there is no watch 1; watches lists them"]
    assert code == 0 and len(said) == 9  # nothing after quit is read


def test_a_backward_stop_and_its_instructions(session):
    line = line_of(FAKE, "h = x * 2")
    said, code = session([f"b fake_debuggee.py:{line} mode backward", "r", "w", "stepi", "dis", "clear all", "c"], FAKE, 2)
    assert "mode backward" in said[0][0] and "pending" in said[0][0]
    assert any(text.startswith("▸ backward of h = x * 2") and text.endswith(f"fake_debuggee.py:{line}") for text in said[1])
    assert [text.split()[-1] for text in said[2]][1] == "──"
    assert "Paused on step" in said[3] and any(text.startswith("▸ 0x") for text in said[4])
    assert said[6][-2:] == ["total 8", "the program ended with exit code 0"] and code == 0


def test_a_temporary_breakpoint_stops_once_and_conditions_count(session):
    line = line_of(FAKE, "return h + 1")
    commands = [f"tbreak {line} if x == 2", "run", "frame 1", "print x", "breakpoints",
                f"break {line} if x == 3", "restart", "frame 1", "print x", "continue"]
    said, code = session(commands, FAKE, 3)
    assert said[0] == [f"breakpoint 1 at fake_debuggee.py:{line}  if x == 2  once"]
    assert said[3] == ["2"] and said[4] == ["filter uncaught"] and said[8] == ["3"]  # the program began anew in between
    assert said[9][-1] == "the program ended with exit code 0" and code == 0


def test_a_breakpoint_says_what_it_replaces_and_where_it_stops(session, tmp_path):
    script = tmp_path / "blank.py"
    script.write_text("x = 1\n\n\ny = x + 1\nprint(y)\n")
    said, code = session(["break 4 if x == 1", "tbreak 4 mode backward", "tbreak 4 mode backward", "clear all", "break 2", "run",
                          "clear blank.py:1", "c"], script)
    assert said[1][1] == "replaces breakpoint 1 at blank.py:4  if x == 1" and len(said[2]) == 1
    assert any(line.endswith("stops at blank.py:1, since line 2 has no code") for line in said[4] + said[5]), said
    assert said[6] == ["1 cleared"] and code == 0


def test_tile_does_not_move_where_there_is_no_area(session):
    engine()
    said, code = session([f"b real.py:{S}", "run", "tile", "where", "clear all", "quit"], REAL, 3, 0)
    assert said[2] == ["error: no fused area begins here (a forward stop stands in Python): stop with mode backward or at an instruction"]
    assert said[3][0].split()[-1] == f"real.py:{S}" and said[3][0].startswith("▸")


def test_a_wrong_command_is_one_line_and_the_prompt_goes_on(session):
    wrong = ["nonsense", "break", "break nowhere.py:3", "break 9999", "break real.py:x", f"break {H} mode sideways", "clear 7",
             "clear all", "filter sideways", "unfilter nan", "watch", "unwatch x", "where", "print 1", "next", "tensors", "list", "dis",
             "frame 1", "reload", "reload nowhere.py", "device gpu:9", "help nonsense"]
    said, code = session([*wrong, "", "run", "print no_such", "print", "frame 99", "frame x", "tensors", "dis 99", "dis x", "q"],
                         FAKE, 1, "--stop-on-entry")
    told = dict(zip(wrong, said))  # noqa: B905
    for command, lines in told.items():
        if command != "break":
            assert len(lines) == 1 and lines[0].startswith("error: "), (command, lines)
    assert told["break"] == ["filter uncaught"]
    assert told["break 9999"][0].endswith("not 9999") and "run starts it" in told["where"][0]
    assert "help lists them" in told["nonsense"][0] and "there is no file nowhere.py" in told["break nowhere.py:3"][0]
    assert code == 0
    assert said[len(wrong) + 1][-1].startswith("the program ended") or said[-1] == []


def test_stop_on_entry_an_exception_and_its_exit_code(session, tmp_path):
    script = tmp_path / "fails.py"
    script.write_text("import sys\nvalue = int(sys.argv[1])\nprint('value', value, sys.argv[2:])\n1 / value\nsys.exit(3)\n")
    said, code = session(["print 6 * 7", "c", "c"], "--stop-on-entry", script, 2, "-x", "--device", "y", "--", "z", cwd=tmp_path)
    assert said[0] == ["42"] and said[1][0] == "value 2 ['-x', '--device', 'y', '--', 'z']"
    assert any(line.endswith("fails.py:5") for line in said[1])  # at sys.exit with an error code, which no one catches
    assert said[2] == ["the program ended with exit code 3"] and code == 3
    said, code = session(["run", "print value", "c"], script, 0)
    assert "Paused on ZeroDivisionError: division by zero" in said[0] and said[1] == ["0"]
    assert said[2][-1] == "the program ended with exit code 1" and code == 1


def test_a_module_and_what_cannot_start(session, tmp_path):
    (tmp_path / "answer.py").write_text("import sys\nprint('module', sys.argv[1:])\n")
    said, code = session(["r"], "-m", "answer", "-q", cwd=tmp_path)
    assert said[0] == ["module ['-q']", "the program ended with exit code 0"] and code == 0
    wrong = (((), "what is to be debugged"), (("nowhere.py",), "no script 'nowhere.py'"), (("--hot-reload", "x", "y"), "invalid"))
    for arguments, text in wrong:
        command = [sys.executable, "-m", "dvm_core.cli", "debug", *arguments]
        ended = subprocess.run(command, env=environment(), capture_output=True, text=True)
        assert ended.returncode == 2 and text in ended.stderr


def test_ctrl_c_pauses_and_the_end_of_input_ends_the_program(run):
    engine()
    one = run(REAL, 100000, 0.005)
    one.type("run")
    one.until("step 3 ")
    one.process.send_signal(signal.SIGINT)
    one.until("Paused on pause")
    one.type("print 6 * 7", "pause 0.1")
    one.until("42")
    one.until("Paused on pause")
    one.process.send_signal(signal.SIGINT)  # at the prompt it ends nothing but the line
    one.until("interrupted")
    one.type("print 7 * 8")
    one.until("56")
    assert one.end() == 0


def test_ctrl_c_twice_ends_what_cannot_be_paused(run, tmp_path):
    script = tmp_path / "asleep.py"
    script.write_text("import time\nprint('asleep', flush=True)\ntime.sleep(3600)\n")
    one = run(script)
    one.type("run")
    one.until("asleep")
    one.process.send_signal(signal.SIGINT)
    one.until("Ctrl-C again")
    one.process.send_signal(signal.SIGINT)
    assert one.end() == 130 and one.lines[-1] == "ended by Ctrl-C"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("running", [True, False])
def test_nothing_is_left_of_a_session_that_is_killed(run, number, running):
    engine()
    one = run(REAL, 100000, 0.005)
    one.type("run" if running else "breakpoints")
    one.until("step 3 " if running else "filter uncaught")
    one.process.send_signal(number)
    assert one.end() == (143 if number == signal.SIGTERM else -9)


def test_a_frame_of_code_from_before_an_edit_is_shown_in_its_own_text(run, tmp_path):
    engine()
    program = tmp_path / "loop.py"
    program.write_text("import numpy as np\nimport dvm_core as dvm\n\n\n@dvm.jit\ndef forward(x):\n    return x * 2.0\n\n\n"
                       "for number in range(100000):\n    y = forward(dvm.tensor(np.ones(2, np.float32))).numpy()\n")
    one = run("--hot-reload", "manual", program, cwd=tmp_path)
    one.type("b loop.py:7", "run")
    one.until("Paused on")
    text = program.read_text()
    program.write_text(text.replace("    return x * 2.0", "    # one more line\n" * 6 + "    return x * 3.0"))
    one.type("clear all", "reload loop.py", "b loop.py:13", "c")  # a line that the text before did not have: <module> runs by that
    one.until("Paused on")
    one.type("frame 2", "list")
    said = one.until("▸   11  ")
    assert said == "▸   11      y = forward(dvm.tensor(np.ones(2, np.float32))).numpy()", said
    one.type("clear all", "quit")
    one.end()


def test_a_saved_file_is_reloaded_at_a_stop(run, tmp_path):
    engine()
    program = tmp_path / "loop.py"
    program.write_text(REAL.read_text())
    one = run("--hot-reload", "manual", program, 100000, 0.005, cwd=tmp_path)
    one.type("run")
    one.until("step 3 ")
    one.process.send_signal(signal.SIGINT)
    one.until("Paused on pause")
    program.write_text(REAL.read_text().replace("s.log() / 2", "s.log() / 4"))
    one.type("reload loop.py", "pause 0.2")
    assert one.until("applied at step").startswith("loop.py")
    one.until("mean 0.259492")
    one.until("Paused on pause")
    one.type("undo", "undo loop.py", "pause 0.2")
    assert one.until("undone at step").startswith("loop.py")
    one.until("loop.py unchanged: no edit of loop.py is in force: nothing to undo")
    one.until("Paused on pause")
    one.type("quit")
    assert one.end() == 0


def test_when_nobody_reads_what_is_said_the_session_ends(run):
    one = run(FAKE, 100000, 0.01, silent=True)
    one.type("run")
    assert one.end() == 1


def test_in_a_real_terminal_ctrl_c_reaches_the_debugger_alone():
    engine()
    mark = uuid.uuid4().hex
    pid, terminal = pty.fork()
    if not pid:
        os.chdir(PROGRAMS)
        os.execve(sys.executable, [sys.executable, "-m", "dvm_core.cli", "debug", str(REAL), "100000", "0.005"],
                  {**environment(), "DVM_KILL_TEST": mark, "TERM": "xterm"})
    seen = b""

    def until(text, again=b""):
        nonlocal seen
        while text not in seen:
            if again and not select.select([terminal], [], [], 2)[0]:
                os.write(terminal, again)
            assert select.select([terminal], [], [], BOUND)[0], seen
            seen += os.read(terminal, 4096)
        seen = seen.partition(text)[2]

    try:
        until(b"(dvm) ")
        os.write(terminal, b"run\n")
        until(b"step 3 ")
        os.write(terminal, b"\x03")
        until(b"\x1b[1mPaused on pause")
        until(b"(dvm) ")
        os.write(terminal, b"nonsense\x03")  # the line is thrown away
        until(b"(dvm) ", again=b"\x03")  # CPython misses a signal between its prompt and its wait for keys: a person presses again
        os.write(terminal, b"print 6 * 7\n")
        until(b"42")
        until(b"(dvm) ")
        os.write(terminal, b"\x04")
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        gone(mark)
    finally:
        os.close(terminal)
        for process in family(mark):
            with contextlib.suppress(psutil.Error):  # it ends by itself
                process.kill()
