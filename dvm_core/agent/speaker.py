"""How the ranks of a job that run under `dvm run --watch` find the process that speaks for them (dvm_adapter.together).

Rank 0 starts it, and leaves its address and token beside the doors, in a file that only this user can read, named after the process that
started the ranks."""
from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import dvm_wire
from dvm_wire import doors
from dvm_wire.ranks import job_marks, marks, rank_of, size_of

from ..errors import Error
from .connection import Connection

_FIND = 60.0  # seconds for rank 0 to have left the address
_BEGIN = 20.0  # seconds for the speaker to listen
_WELCOME = 20.0  # seconds for it to answer
_LOOK = 0.1
_MOST_SAID = 1 << 16  # bytes of its complaint
_MODULE = "dvm_adapter.together"

Answer = dict[str, Any]


class Unjoined(Error):
    """The other ranks cannot be spoken to; the text says why."""


def launcher() -> int:
    """The process that started the ranks of this one's job, 0 where this is no rank among several.

    Between the two may be wrappers, which have the rank's environment. A rank's own children have it as well, and are none: one of the
    processes between has a door."""
    size, rank = size_of() or 0, rank_of()
    if rank is None or size < 2:
        return 0
    pid, mine = os.getppid(), marks()
    while marks(doors.environment_of(pid)) == mine:
        above = doors.stat_fields(pid)
        if doors.has_door(pid) or len(above) < 2:
            return 0
        pid = int(above[1])
    return pid


def enter(give_up: threading.Event) -> tuple[Connection, list[Answer]]:
    """A connection to the speaker, and what it had to say before its welcome. give_up: set to end the wait. Raises Unjoined."""
    parent = launcher()
    end = time.monotonic() + _FIND
    made = False
    while not give_up.is_set():
        told = doors.job(parent, job_marks())
        if told is not None and (entered := _knock(told, parent)) is not None:
            return entered
        if rank_of() == 0:
            if made:
                raise Unjoined(f"`{sys.executable} -m {_MODULE}`, which takes edits to all ranks, ends as soon as it has begun")
            _begin(parent)
            made = True
        elif time.monotonic() > end:
            raise Unjoined(f"rank 0 of this job was not found in {_FIND:.0f} s: it has to run under `dvm run --watch`, on this machine, as "
                           "the same user and with the same DVM_CACHE")
        else:
            give_up.wait(_LOOK)
    raise Unjoined("the program ends")


def _knock(told: Answer, parent: int) -> tuple[Connection, list[Answer]] | None:
    """None if nobody is there, any more or yet. Raises Unjoined if somebody is who does not answer."""
    with contextlib.ExitStack() as opened:
        try:
            sock = dvm_wire.connect({dvm_wire.ENV_ADDRESS: told["address"]})
            assert sock is not None
            opened.enter_context(contextlib.closing(sock))
            dvm_wire.write_frame(sock, {"type": "rank", "token": told["token"], "pid": os.getpid(), "rank": rank_of(), "size": size_of(),
                                        "job": parent})
            dvm_wire.write_frame(sock, {"id": 0, "cmd": "joined"})
            heard: list[Answer] = []
            while (message := dvm_wire.read_frame(sock, seconds=_WELCOME)) is not None:
                if message.get("re") == 0:
                    sock.settimeout(None)
                    opened.pop_all()
                    return Connection(sock, of_environment=False), heard
                heard.append(message)
        except TimeoutError:
            raise Unjoined(f"what takes edits to all ranks, at {told['address']}, did not answer in {_WELCOME:.0f} s") from None
        except (OSError, dvm_wire.WireError):
            pass
    return None


def _begin(parent: int) -> None:
    """Starts the speaker, and writes down where it is. Raises Unjoined."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DVM_DOOR")}
    try:
        # A session of its own: Ctrl-C, and a launcher that ends its ranks by their group, do not meet it. What is started here ends at
        # once and leaves the speaker to init: this program waits for no child that it did not make.
        # Not in the user's folder: its `queue.py` would be taken for the library's.
        process = subprocess.Popen([sys.executable, "-m", _MODULE], cwd=os.path.abspath(os.sep), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, start_new_session=True)
        timer = threading.Timer(_BEGIN, _kill, (process,))
        timer.daemon = True
        timer.start()
        assert process.stdout is not None and process.stderr is not None
        with process.stdout, process.stderr:  # not the ranks' own: who reads what they say to its end waits for no one else
            line = process.stdout.readline()
            timer.cancel()
            if hasattr(os, "fork"):
                process.wait()
            if not line:
                raise OSError(process.stderr.read(_MOST_SAID).decode(errors="replace").strip().rpartition("\n")[2] or "it says nothing")
        told = json.loads(line)
        try:
            doors.leave_job(parent, job_marks(), {"address": str(told["address"]), "token": str(told["token"])})
        except OSError:
            _kill(process)  # nobody would find it
            raise
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Unjoined(f"`{sys.executable} -m {_MODULE}`, which takes edits to all ranks, does not run: {error}") from None


def _kill(process: subprocess.Popen[bytes]) -> None:
    """With what it has left behind."""
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
