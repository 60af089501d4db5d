"""Attaching by process id to programs that wait for no debugger, leaving them as they were, and what is refused."""
import asyncio
import json
import os
import queue
import shutil
import socket
import stat
import subprocess
import sys
import threading

import dvm_wire
import pytest
from dvm_adapter import debugpy_peer
from dvm_adapter.config import Config, environment_for
from dvm_adapter.debugpy_peer import DebugpyPeer
from dvm_adapter.events import without_secrets
from dvm_wire import doors
from harness import PROGRAMS, RequestFailed, Terminal, environment, line_of

pytest.importorskip("numpy")
pytest.importorskip("dvm_core._core")

PROGRAM = PROGRAMS / "attachable.py"
STOP = line_of(PROGRAM, "s = h + 1.5")
AFTER = line_of(PROGRAM, "# after the step")
WAIT = 120  # seconds: on hanging, not on speed


class Program:
    """A running program, and what it has printed."""

    def __init__(self, *arguments, program=PROGRAM, **more):
        self.process = subprocess.Popen([sys.executable, "-X", "faulthandler", str(program), *map(str, arguments)], stdout=subprocess.PIPE,
                                        env={**environment(), "DVM_CACHE": os.environ["DVM_CACHE"]}, text=True, **more)
        self.pid = self.process.pid
        self.lines = []
        self._coming = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self._coming.put(line.split())
        self._coming.put(None)

    def line(self, *, where=lambda words: True):
        """The next line that satisfies `where`."""
        while True:
            words = self._coming.get(timeout=WAIT)
            assert words is not None, f"the program ended with {self.process.wait()}"
            self.lines.append(words)
            if where(words):
                return words

    def goes_on_untraced(self, steps=5):
        """Until that many steps on end were run by a program whose tracing is off."""
        run = 0
        while run < steps:
            run = run + 1 if self.line(where=lambda words: words[0] == "step")[3] == "free" else 0

    def losses(self, steps=0):
        """Of the steps so far, of that many at least."""
        while sum(words[0] == "step" for words in self.lines) < steps:
            self.line()
        return [words[2] for words in self.lines if words[0] == "step"]

    def close(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def run():
    made = []

    def start(*arguments, **more):
        made.append(Program(*arguments, **more))
        return made[-1]

    yield start
    for program in made:
        program.close()


def attach(session, pid, *lines, path=PROGRAM, **more):
    session.attach(path, *lines, timeout=WAIT, processId=pid, **more)
    return session


def stopped(session):
    assert session.event("stopped", timeout=WAIT)["body"]["reason"] == "breakpoint"


def refused(session, pid, **more):
    with pytest.raises(RequestFailed) as failed:
        attach(session, pid, **more)
    assert failed.value.response.get("body", {}).get("error", {}).get("showUser", True)
    return str(failed.value.response["message"])


def test_a_running_program_is_entered_stopped_looked_at_and_left(adapter, run):
    program = run(100000, 0.01)
    program.line()
    session = attach(adapter(), str(program.pid), STOP)
    stopped(session)
    frames = session.stack(1)
    assert [f["name"] for f in frames[:4]] == ["s = h + 1.5", "── Python ──", "forward", "train"]
    shown = {v["name"]: v["value"] for v in session.variables(session.scopes(frames[0]["id"])["Tensors"]["variablesReference"])}
    assert "f32[8,4]" in shown["h"]
    threads = session.request("threads")["threads"]
    assert [thread["name"] for thread in threads] == ["MainThread"]
    session.go_on()
    stopped(session)
    session.close(terminate=False)  # while it stands
    program.goes_on_untraced()
    session = attach(adapter(), program.pid, AFTER)
    stopped(session)
    assert session.stack(1)[0]["line"] == AFTER
    session.close(terminate=False)
    program.goes_on_untraced()
    assert program.process.poll() is None


def test_a_device_that_one_session_names_is_not_left_for_the_next(adapter, run):
    program = run(100000, 0.01)
    program.line()
    for device, left in (("npu-sim:910b", "'npu-sim:910b'"), (None, "None")):
        session = attach(adapter(), program.pid, STOP, **({"dvm": {"device": device}} if device else {}))
        stopped(session)
        frame = next(f["id"] for f in session.stack(1) if f["name"] == "forward")
        asked = session.request("evaluate", expression="__import__('os').environ.get('DVM_DEVICE')", context="watch", frameId=frame)
        assert asked["result"] == left
        session.close(terminate=False)
        program.goes_on_untraced()


def test_losses_stay_the_same_to_the_last_bit_through_many_sessions_on_end(adapter, run):
    program = run(1000000, 0.02, "threads")
    program.line()
    for turn in range(20 if os.environ.get("DVM_STRESS") == "long" else 6):
        session = attach(adapter(), program.pid, STOP if turn % 2 else AFTER)
        stopped(session)
        if turn % 3:
            session.go_on()
            stopped(session)
        session.close(terminate=False)
    program.goes_on_untraced()
    told = program.losses()
    program.close()
    assert told == run(1000000, 0).losses(len(told))[:len(told)]


@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_children_start_as_ever_after_the_debugger_has_gone(adapter, run, how):
    program = run(100000, 0.01, how)
    program.line()
    session = attach(adapter(), program.pid, AFTER, subProcess=False)
    stopped(session)
    session.close(terminate=False)
    program.goes_on_untraced()
    program.line(where=lambda words: words == ["child", "7"])
    for _ in range(2):
        assert program.line(where=lambda words: words[0] == "child") == ["child", "7"]


def test_a_killed_adapter_leaves_the_program_running_untraced(adapter, run):
    program = run(100000, 0.01)
    program.line()
    session = attach(adapter(), program.pid, AFTER)
    stopped(session)
    session.process.kill()
    program.goes_on_untraced()
    session = attach(adapter(), program.pid, STOP)
    stopped(session)


def test_a_program_that_listens_is_attached_to_where_it_listens(adapter, run):
    program = run(1000, 0.02, 1.0, "--listen", program=PROGRAMS / "real.py")
    program.line(where=lambda words: words[0] == "listening")
    line = line_of(PROGRAMS / "real.py", "s = h + scale")
    session = attach(adapter(), program.pid, line, path=PROGRAMS / "real.py")
    stopped(session)
    assert session.stack(1)[0]["name"] == "s = h + scale"
    # what attached is not started anew: an editor that sees this ends the session and attaches again
    assert session.event("capabilities")["body"] == {"capabilities": {"supportsRestartRequest": False}}
    assert "attached to a program that others have started" in session.refusal("restart")
    assert "attached to a debugger already" in refused(adapter(), program.pid)


LIBRARY = PROGRAMS / "in_library.py"


@pytest.mark.parametrize("how", ["door", "listen"])
def test_a_step_from_a_pause_in_a_library_ends_in_the_frame_that_was_shown(adapter, run, how):
    program = run(how, program=LIBRARY)
    where = {"processId": program.pid}
    if how == "listen":
        where = {"connect": {"host": "127.0.0.1", "port": int(program.line()[1])}}
    program.line(where=lambda words: words[0] == "step")
    session = adapter()
    session.attach(LIBRARY, timeout=WAIT, **where)
    after = {"next": line_of(LIBRARY, "# after it"), "stepIn": line_of(LIBRARY, "# after it"), "stepOut": line_of(LIBRARY, "# again")}
    for command in [*after, *after]:
        while True:
            session.request("pause", threadId=1)
            session.stopped(reason="pause")
            if session.stack(1)[0]["line"] == line_of(LIBRARY, "# in the library"):
                break
            session.go_on()
        session.request(command, threadId=1)
        session.stopped(reason="step")
        assert session.stack(1)[0]["line"] == after[command], command
        session.go_on()
    session.close(terminate=False)
    program.line()


def test_processes_that_cannot_be_attached_to_are_refused_with_the_reason(adapter, run):
    assert "there is no process 4194999" in refused(adapter(), 4194999)
    assert "only VS Code shows that list" in refused(adapter(), "${command:pickProcess}")
    sleeping = subprocess.Popen(["sleep", "60"])
    try:
        assert f"process {sleeping.pid} is no Python program (sleep 60)" in refused(adapter(), sleeping.pid)
    finally:
        sleeping.kill()
        sleeping.wait()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can start a process of another user")
def test_another_users_process_is_refused(adapter):
    other = subprocess.Popen(["sleep", "60"], user=65534)
    try:
        assert f"process {other.pid} belongs to another user" in refused(adapter(), other.pid)
    finally:
        other.kill()
        other.wait()


def test_a_program_started_by_a_debugger_is_not_attached_to_again(adapter, session):
    session.start(PROGRAM, args=["100000", "0.01"])
    pid = session.event("process")["body"]["systemProcessId"]
    assert "was started by a debugger" in refused(adapter(), pid)


@pytest.mark.skipif(shutil.which("gdb") is None, reason="debugpy injects itself with gdb")
def test_a_program_without_the_tensor_engine_is_injected(adapter, run, tmp_path):
    plain = tmp_path / "plain.py"
    plain.write_text("import threading, time\nfor n in range(100000):\n    print('step', n, flush=True)\n    time.sleep(0.02)  # here\n")
    program = run(program=plain)
    program.line()
    try:
        session = attach(adapter(), program.pid, 4, path=plain)
    except RequestFailed as failed:  # gdb and the kernel of some virtual machines do not go together
        pytest.skip(str(failed.response.get("message")))
    stopped(session)
    assert session.stack(1)[0]["line"] == 4
    session.close(terminate=False)
    program.line()


def test_the_remedy_is_named_where_injection_cannot_work(adapter, run, tmp_path, monkeypatch):
    plain = tmp_path / "plain.py"
    plain.write_text("import time\nprint('step', flush=True)\ntime.sleep(60)\n")
    program = run(program=plain)
    program.line()
    monkeypatch.setenv("PATH", str(tmp_path))
    text = refused(adapter(), program.pid)
    assert "has not imported dvm_core (yet)" in text and "needs gdb" in text and "apt install gdb" in text and "dvm.debug.listen" in text


def dvm(*arguments):
    done = subprocess.run([sys.executable, "-m", "dvm_core.cli", *map(str, arguments)], env=environment(), capture_output=True, text=True,
                          timeout=WAIT)
    return done.returncode, done.stdout + done.stderr


def test_a_running_program_takes_a_saved_file_without_a_debugger(run, tmp_path):
    path = shutil.copy(PROGRAM, tmp_path / "loop.py")
    program = run(100000, 0.01, program=path)
    program.line()
    code, said = "", ""
    while "no file of the program was saved since" not in said:  # and what it was made from is noted
        code, said = dvm("reload", program.pid)
    assert code == 0
    text = open(path).read()
    with open(path, "w") as file:
        file.write(text.replace("h + 1.5", "h + 2.5"))
    code, said = dvm("reload", program.pid, path)
    assert code == 0 and "loop.py applied at step" in said, said
    with open(path, "w") as file:
        file.write(text.replace("h + 1.5", "h + ("))
    code, said = dvm("reload", program.pid)
    assert code == 1 and "loop.py refused" in said, said
    foreign = tmp_path / "secrets"
    foreign.write_text("root:x:0")
    code, said = dvm("reload", program.pid, str(foreign))
    assert code == 1 and said.strip() == "secrets refused: no module of the program was made from this file"
    plain = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)  # not this one: what it has imported is its worker's
    try:
        code, said = dvm("reload", plain.pid)
        assert code == 1 and f"process {plain.pid} has not imported dvm_core (yet)" in said
    finally:
        plain.kill()
        plain.wait()


def test_the_terminal_attaches_and_leaves_the_program_running(run):
    program = run(100000, 0.01)
    program.line()
    terminal = Terminal("--pid", program.pid)
    terminal.type(f"break attachable.py:{STOP}", "run", "print h", "quit")
    terminal.until("Paused on tensor line")
    terminal.until("f32[8,4]")
    assert terminal.end() == 0
    program.goes_on_untraced()
    code, said = dvm("debug", "--pid", 4194999)
    assert code == 1 and "there is no process 4194999" in said


def door_of(pid):
    (file,) = [file for folder in doors.folders() for file in folder.glob(f"{pid}-*.json")]
    return file, json.loads(file.read_text())


def ask(told, **message):
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(WAIT)
        sock.connect(told["socket"])
        dvm_wire.write_frame(sock, message)
        return dvm_wire.read_frame(sock)


def test_a_door_opens_for_its_user_and_the_token_alone(run):
    program = run(100000, 0.01)
    program.line()
    while not (program.line() and any(file for folder in doors.folders() for file in folder.glob(f"{program.pid}-*.json"))):
        pass
    file, told = door_of(program.pid)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(os.stat(told["socket"]).st_mode) == 0o600
    assert ask(told, cmd="hello", token="") is None and ask(told, cmd="hello") is None
    assert ask(told, cmd="hello", token=told["token"])["pid"] == program.pid
    assert "unknown request" in ask(told, cmd="nonsense", token=told["token"])["error"]
    for path in ("a\0b", "\ud800", "", 1):
        assert "reload needs a file's path" in ask(told, cmd="reload", token=told["token"], path=path)["error"]
    assert "attach needs host" in ask(told, cmd="attach", token=told["token"], host="127.0.0.1", port="x")["error"]
    file.chmod(0o644)
    with pytest.raises(doors.Shut, match="others than you"):
        doors.knock(program.pid, {"cmd": "hello"})


@pytest.fixture
def sleeping():
    """A process, and where its door would be described."""
    process = subprocess.Popen(["sleep", "600"])
    folder = doors.folders()[-1]
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder / f"{process.pid}-{doors.start_time(process.pid) or 0}.json"
    yield process.pid, file
    process.kill()
    process.wait()
    file.unlink(missing_ok=True)


@pytest.mark.parametrize("text", [
    None, "", "[" * 4000, "1" * 5000, "[]", '{"token": "x"}', '{"port": 5678}', '{"port": 5678, "token": 1}',
    *(f'{{"port": {port}, "token": "x"}}' for port in ("99999999", "-1", "0", "true", "1.0", '"5678"')),
    *(f'{{"socket": "{path}", "token": "x"}}' for path in ("", r"\ud800", r"a\u0000b", "a" * 200)),
    '{"socket": 1, "port": 5678, "token": "x"}', r'{"port": 5678, "token": "\ud800"}', '{"port": 5678, "token": "x"}' + " " * 5000])
def test_a_file_that_describes_no_door_is_none(sleeping, text):
    pid, file = sleeping
    if text is None:
        os.mkfifo(file, 0o600)
    else:
        file.write_text(text)
        file.chmod(0o600)
    with pytest.raises(doors.NoDoor, match="cannot be read"):
        doors.knock(pid, {"cmd": "hello"})


LED_ASTRAY = """\
import os, subprocess, sys, time
import dvm_core

print("up", flush=True)
if sys.argv[1] == "late":  # Python's debugger fails once it is connected
    import debugpy.server.api
    import pydevd
    kept = pydevd.PyDB.initialize_network
    def fails(self, sock):
        pydevd.PyDB.initialize_network = kept
        raise RuntimeError("no more threads")
    pydevd.PyDB.initialize_network = fails
    print("broken", flush=True)
environment = dict(os.environ)
while not os.path.exists(sys.argv[2]):
    time.sleep(0.01)
done = subprocess.run([sys.executable, "-c", "print(7)"], capture_output=True, text=True)
print("child", done.returncode, repr(done.stdout + done.stderr), flush=True)
pid = os.fork()
if not pid:
    os._exit(7)
print("fork", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
print("same", dict(os.environ) == environment, flush=True)
while True:
    time.sleep(0.01)  # here
"""


@pytest.mark.parametrize(("how", "why"), [("early", "refused"), ("late", "no more threads")])
def test_a_failed_attach_leaves_the_program_as_it_was(adapter, run, tmp_path, how, why):
    (path := tmp_path / "led.py").write_text(LED_ASTRAY)
    program = run(how, tmp_path / "go", program=path, stderr=subprocess.STDOUT)
    program.line(where=lambda words: words == ["broken" if how == "late" else "up"])
    while not any(file for folder in doors.folders() for file in folder.glob(f"{program.pid}-*.json")):
        assert program.process.poll() is None
    with socket.create_server(("127.0.0.1", 0)) as waiting:
        port = waiting.getsockname()[1]
        if how == "early":
            waiting.close()
        environ = {dvm_wire.ENV_ADDRESS: f"127.0.0.1:{port}", dvm_wire.ENV_TOKEN: "x"} if how == "early" else {}
        ask = {"cmd": "attach", "host": "127.0.0.1", "port": port, "access": "x", "environment": environ}
        said = doors.knock(program.pid, ask, WAIT)
    assert not said["ok"] and why in said["error"], said
    assert doors.knock(program.pid, {"cmd": "hello"}, WAIT)["debugged"] is False
    (tmp_path / "go").touch()
    assert [program.line() for _ in range(3)] == [["child", "0", r"'7\n'"], ["fork", "7"], ["same", "True"]]
    session = attach(adapter(), program.pid, line_of(path, "# here"), path=path)
    stopped(session)


def test_doors_of_killed_programs_are_swept_and_those_of_ended_ones_gone(run):
    program = run(100000, 0.01)
    while not any(file for folder in doors.folders() for file in folder.glob(f"{program.pid}-*.json")):
        program.line()
    file, _ = door_of(program.pid)
    program.close()
    assert file.exists() and file.with_suffix(".sock").exists()
    later = run(1, 0)
    assert later.line() and later.process.wait(WAIT) == 0
    assert not [left for left in file.parent.iterdir() if left.stem.split("-")[0] in (str(program.pid), str(later.pid))]


def test_the_console_evaluates_while_the_program_prints(adapter, run):
    program = run(10000000, 0)
    program.line()
    session = attach(adapter(), program.pid, dvm={"hotReload": "off"})
    for number in range(300):
        assert session.request("evaluate", expression=f"{number} + 1", context="repl", timeout=WAIT)["result"] == str(number + 1)
    # print() may still be writing to any of the streams that these have put in sys.stdout
    held = "len(__import__('sys').modules['_pydevd_bundle.pydevd_io'].IORedirector._newest)"
    assert session.request("evaluate", expression=held, context="clipboard", timeout=WAIT)["result"] == "256"
    assert program.process.poll() is None


def test_an_injection_is_not_killed_while_it_holds_the_program(monkeypatch):
    seen, tracers = [], iter([7, 7, 0])

    def tracer(pid):
        seen.append(next(tracers))
        return seen[-1]

    async def end():
        peer = DebugpyPeer(None, None, None)
        peer.target, peer.kill = 4711, lambda: seen.append("killed")
        await peer.kill_untraced()

    monkeypatch.setattr(debugpy_peer, "tracer_of", tracer)
    asyncio.run(end())
    assert seen == [7, 7, 0, "killed"]


def test_what_an_injector_says_is_told_without_the_token_of_the_sockets():
    token = "0a" * 32
    codes = ", ".join(str(ord(letter)) for letter in f'{{"adapter_access_token": "{token}"}}')
    said = f"Running: gdb --pid 4711 --eval-command='call run([{codes}])' --adapter-access-token {token}\nwarning: 0x7f0000001000\n"
    assert without_secrets(said) == ("Running: gdb --pid 4711 --eval-command='call run([…])' --adapter-access-token …\n"
                                     "warning: 0x7f0000001000\n")


def test_code_from_before_an_edit_is_shown_in_its_own_text_also_in_a_session_that_attaches_later(adapter, run, tmp_path):
    path, lines = tmp_path / "edited.py", PROGRAM.read_text().splitlines()
    path.write_text(PROGRAM.read_text())
    program = run(100000, 0.01, program=path)
    program.line()
    session = attach(adapter(), program.pid, AFTER, path=path)
    stopped(session)
    path.write_text("\n".join(["", *lines[:AFTER - 1], "        w = w + np.float32(0.02) * y", *lines[AFTER:], ""]))
    assert session.event("dvm/reload", timeout=WAIT)["body"]["outcome"] == "applied"
    session.close(terminate=False)
    session = attach(adapter(), program.pid, STOP + 1, path=path)
    stopped(session)
    train = next(frame for frame in session.stack(1) if frame["name"] == "train")
    told = session.request("source", source=train["source"], sourceReference=train["source"]["sourceReference"])
    assert "y = forward(" in told["content"].splitlines()[train["line"] - 1]
    session.close(terminate=False)


def test_a_program_that_imports_the_engine_while_it_is_attached_to_finds_the_address_last():
    for command, device in (("attach", {}), ("attach", {"device": "npu-sim:910b"}), ("launch", {})):
        told = environment_for(Config.read(command, {"dvm": device, "processId": os.getpid()}), "127.0.0.1:1", "token")
        assert [*told][-1] == dvm_wire.ENV_ADDRESS and told[dvm_wire.ENV_TOKEN] == "token"
        assert told.get("DVM_DEVICE") == (device.get("device") if command == "attach" else "cpu")
