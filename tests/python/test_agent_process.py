"""The agent and its process: started by import, gone with the debugger, new in a forked child; Python alone is not slowed down."""
import os
import signal
import subprocess
import sys

import pytest
from agent_harness import ROOT, Adapter, Refused

TARGET = ROOT / "tests" / "data" / "agent" / "process_target.py"


def environment(**more):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DVM_")}
    return {**clean, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "adapter")]), **more}


@pytest.fixture
def adapter():
    made = Adapter({})
    yield made
    made.close()


def start(adapter, what, **more):
    process = subprocess.Popen([sys.executable, str(TARGET), what], env=environment(**adapter._environment, **more),
                               stdout=subprocess.PIPE, text=True)
    adapter.accept()
    assert process.stdout.readline() == "connected True\n"
    return process


@pytest.mark.parametrize("state", ["busy", "fork"])
def test_a_launched_process_ends_with_the_debugger(adapter, state):
    process = start(adapter, state, DVM_LAUNCHED="1")
    adapter.sock.shutdown(2)
    assert process.wait(60) == -signal.SIGKILL


def test_a_device_that_there_is_not_takes_no_debugger_away(adapter):
    process = start(adapter, "end", DVM_DEVICE="foo")
    told = adapter.event("notice")
    assert told["category"] == "error" and told["text"].startswith("there is no device 'foo'; available: 'cpu'")
    assert told["text"].endswith("; the program runs on cpu")
    adapter.sock.shutdown(2)
    assert process.stdout.read() == "END\n" and process.wait(5) == 0


def test_an_attached_process_runs_on(adapter):
    process = start(adapter, "end")
    adapter.sock.shutdown(2)
    assert process.stdout.read() == "END\n" and process.wait(5) == 0


def test_detach_lets_a_launched_process_run_on(adapter):
    process = start(adapter, "end", DVM_LAUNCHED="1")
    adapter.request("detach")
    adapter.event("eof")
    assert process.stdout.read() == "END\n" and process.wait(5) == 0


def test_garbage_on_the_wire_is_the_end_of_the_debugger(adapter):
    process = start(adapter, "end")
    adapter.sock.sendall(b"\xff\xff\xff\xffgarbage")
    assert process.stdout.read() == "END\n" and process.wait(5) == 0


def test_a_forked_child_has_an_agent_of_its_own(adapter):
    parent = start(adapter, "fork")
    child = Adapter.__new__(Adapter)
    child.__dict__.update(adapter.__dict__)
    child.events, child.seen, child._answers, child._last = [], [], {}, 0
    child.accept()
    assert child.hello["pid"] != parent.pid == adapter.hello["pid"]
    assert parent.stdout.readline() == "child True\n"
    assert child.request("status")["device"] == "cpu"
    assert adapter.request("status")["device"] == "cpu"
    os.kill(child.hello["pid"], signal.SIGKILL)
    child.event("eof")
    assert parent.wait(5) == 0


def test_a_wrong_address_costs_a_line_on_stderr():
    done = subprocess.run([sys.executable, str(TARGET), "end"], env=environment(DVM_AGENT="127.0.0.1:1"), capture_output=True, text=True,
                          timeout=60)
    assert done.stdout == "connected False\nEND\n" and done.stderr.startswith("dvm: no debugger: ")


def test_without_a_debugger_no_part_of_it_is_imported():
    code = "import sys, dvm_core; print([m for m in sys.modules if m.startswith(('dvm_core.agent', 'dvm_wire', 'debugpy'))])"
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, timeout=60)
    assert done.stdout == "[]\n", done.stderr


def test_unknown_filters_are_told(adapter):
    process = start(adapter, "busy")
    assert list(adapter.request("filters", conditions={"nan": "", "odd": ""})["refused"]) == ["odd"]
    with pytest.raises(Refused, match='argument "conditions" is 3; it must be dict'):
        adapter.request("filters", conditions=3)
    process.kill()
    process.wait()
