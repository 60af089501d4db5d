"""The process's door: how long a visitor is waited for, and what a reload answers that takes too long."""
import _thread
import os
import socket
import threading
import types

import pytest

from dvm_core import agent
from dvm_core import door as entrance
from dvm_core.agent import door


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="needs a pair of Unix sockets")
def test_a_visitor_that_sends_byte_after_byte_is_waited_for_once(monkeypatch):
    monkeypatch.setattr(door, "_PATIENCE", 0.3)
    here, there = socket.socketpair()
    over = threading.Event()

    def drip():
        there.send(b"\0\0\x40\0")  # 16 KiB are to come
        while not over.wait(0.02):
            there.send(b" ")

    thread = threading.Thread(target=drip, daemon=True)
    thread.start()
    found = []
    asked = threading.Thread(target=lambda: found.append(door.request(here, "token")), daemon=True)
    asked.start()
    asked.join(60)  # on hanging: the bytes alone would take over five minutes
    over.set()
    thread.join()
    for end in (here, there):
        end.close()
    assert found == [None]


def test_what_was_reloaded_is_told_where_a_later_file_takes_too_long(monkeypatch):
    def reload(path, text, reply):
        if path == "a.py":
            reply(types.SimpleNamespace(message=lambda: {"path": path, "outcome": "applied"}))

    monkeypatch.setattr(door, "_RELOAD", 0.2)
    monkeypatch.setattr(door, "_saved", lambda book: ["a.py", "b.py", "c.py", "d.py"])
    monkeypatch.setattr(agent, "current", lambda: types.SimpleNamespace(reloader=types.SimpleNamespace(reload=reload)))
    told = door._reload({})
    assert told["ok"] is False and told["reports"] == [{"path": "a.py", "outcome": "applied"}]
    assert "the new code of b.py is not in force" in told["error"] and told["error"].endswith("; not tried: c.py, d.py")


@pytest.mark.parametrize("launched", [False, True])
def test_a_debugger_that_cannot_be_reached_is_not_looked_for_by_children(monkeypatch, capfd, launched):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    monkeypatch.setenv("DVM_AGENT", f"127.0.0.1:{port}")
    monkeypatch.setenv("DVM_TOKEN", "0" * 32)
    monkeypatch.setenv("DVM_DEVICE", "cpu")
    monkeypatch.setenv("DVM_LAUNCHED", "1" if launched else "")
    assert agent.start(before={"DVM_DEVICE": "npu-sim:910b"}) is False and "dvm: no debugger" in capfd.readouterr().err
    here = os.environ.get("DVM_AGENT"), os.environ.get("DVM_TOKEN"), os.environ["DVM_DEVICE"]
    assert here == ((f"127.0.0.1:{port}", "0" * 32, "cpu") if launched else (None, None, "npu-sim:910b"))


def test_the_doors_thread_is_hidden_when_it_notes_the_sources():
    seen, ended = [], threading.Event()

    def run():
        entrance._Keeper._look()
        seen.append(threading.current_thread())
        ended.set()

    _thread.start_new_thread(run, ())
    assert ended.wait(20) and seen[0].is_pydev_daemon_thread and seen[0].pydev_do_not_trace
