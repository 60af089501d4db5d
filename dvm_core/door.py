"""The door of this process: a debugger that was not waited for comes in by it, as `dvm reload` does. See dvm_wire/doors.py.

Opened by a thread, so that the import of dvm_core waits for nothing. The thread waits in the kernel; some seconds and minutes after the
start it also notes the sources of the modules loaded since, which a reload is compared with. What is asked at the door is done in
agent/door.py, which is not loaded before. DVM_DOOR=0 in the environment keeps it shut."""
from __future__ import annotations

import _thread
import atexit
import os
import sys
import threading
from typing import Any

_LOOKS = (1.0, 2.0, 7.0, 20.0, 70.0, 200.0)  # seconds between looks at the loaded modules
_FORK_WAIT = 2.0  # seconds a fork waits for the thread to have nothing half done


class _Keeper:
    """One process's door, and the thread that minds it."""

    def __init__(self) -> None:
        self.door: Any = None
        self.visitor: Any = None  # whose request is awaited
        self.busy = _thread.allocate_lock()  # held while the thread imports or reads: a fork in between would leave locks held for ever
        self.busy.acquire()
        # No `threading.Thread`: a program's own list of its threads stays its own.
        _thread.start_new_thread(self._run, ())

    def _run(self) -> None:
        try:
            from dvm_wire.doors import Door

            self.door = Door()
        except Exception:  # a full disk, a read-only home: the program runs without a door, and attaching says that there is none
            return
        finally:
            self.busy.release()
        looks = iter(_LOOKS)
        while True:
            try:
                self.door.socket.settimeout(next(looks, None))
                visitor, _ = self.door.socket.accept()
            except TimeoutError:
                self._guarded(self._look)
            except OSError:
                return  # closed
            else:
                self.visitor = visitor
                self._receive(visitor)
                self.visitor = None

    def _guarded(self, work: Any, *arguments: Any) -> Any:
        try:
            with self.busy:
                return work(*arguments)
        except Exception as error:
            print(f"dvm: at the debugger's door: {type(error).__name__}: {error}", file=sys.stderr)
            return None

    @staticmethod
    def _look() -> None:
        from . import agent
        from .agent import door

        door.hide_this_thread()  # what is imported may make threading know it
        agent.remember_sources()

    def _receive(self, visitor: Any) -> None:
        door = self._guarded(self._serving)
        message = None if door is None else door.request(visitor, self.door.token)  # not held: a slow visitor makes no fork wait
        if message is None:
            visitor.close()
        else:
            self._guarded(door.serve, visitor, message)

    @staticmethod
    def _serving() -> Any:
        from .agent import door

        door.hide_this_thread()
        return door


_keeper: _Keeper | None = None
_forking: Any = None  # the lock that the fork going on holds


def _before_fork() -> None:
    global _forking
    if _keeper is not None and _keeper.busy.acquire(timeout=_FORK_WAIT):
        _forking = _keeper.busy


def _after_fork() -> None:
    global _forking
    held, _forking = _forking, None
    if held is not None:
        held.release()


def _in_child() -> None:
    global _keeper, _forking
    old, _keeper, _forking = _keeper, None, None
    if old is None:
        return
    for copied in (old.door, old.visitor):
        if copied is not None:
            copied.close()
    if not _debugged():  # else the debugger follows into the child by itself
        _keeper = _Keeper()


def _debugged() -> bool:
    """Whether a debugger is here. One that has gone leaves its modules behind."""
    stop = sys.modules.get("dvm_core.agent.python_stop")
    return "pydevd" in sys.modules and (stop is None or stop.attached())


def _close() -> None:
    if _keeper is not None and _keeper.door is not None:
        _keeper.door.close()


def open_soon() -> None:
    """Opens the door, unless a debugger is here already."""
    global _keeper
    if _keeper is not None or os.environ.get("DVM_AGENT") or os.environ.get("DVM_DOOR") == "0" or "pydevd" in sys.modules:
        return
    threading.main_thread()  # the module is loaded by the main thread, which it takes for that
    _keeper = _Keeper()
    atexit.register(_close)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)
