"""Python's tracing: debugpy needs it for breakpoints, and it slows every call of the program; off while nothing needs it.

Up to Python 3.11 debugpy sets a trace function in every thread for good, which costs about 0.3 µs a call. From 3.12 on it uses
sys.monitoring, which costs nothing where nothing is set, and here nothing is done.

The main thread switches itself, in a pending call, that is between two of its own instructions: this works however the agent was started,
and takes no signal from the program. Other threads are switched from outside by the library that debugpy brings for attaching; on machines
it has none for they stay traced. Tracing comes on with every stop, and goes off when all threads run freely and nothing is set."""
from __future__ import annotations

import collections
import contextlib
import ctypes
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from .commands import Answer, Arguments, command, need
from .connection import TICK, hidden_thread
from .python_stop import _module, _need, debugger

if TYPE_CHECKING:
    from .session import Session

APPLIES = sys.version_info < (3, 12) and sys.implementation.name == "cpython"

# What pydevd holds of breakpoints and filters that stop in a trace function.
_SETTINGS = ("function_breakpoint_name_to_breakpoint", "break_on_caught_exceptions", "break_on_user_uncaught_exceptions",
             "has_plugin_line_breaks", "has_plugin_exception_breaks")
# What turning on again needs of it: looked for before anything is turned off.
_PARTS = ("trace_dispatch", "enable_tracing", "disable_tracing", "set_trace_for_frame_and_parents", "get_file_type",
          "break_on_uncaught_exceptions", "trigger_exception_handler")

# Where turning on and off again begins: a client has come, or gone.
_OCCASIONS = ("on_configuration_done", "on_disconnect")
# Turning off is done again some times: a thread just inside pydevd may turn its own tracing on again afterwards.
_ROUNDS = 3
_SETTLING = 15  # looks
# Debuggers that are held for good, the newest: a thread that is just inside a trace function holds no reference to it, nor to the debugger
# in it, and neither does what replaces it from another thread.
_HELD = 16
_PENDING = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
Uncaught = tuple[type[BaseException], BaseException, "TracebackType | None"]


class Tracing:
    """Whether the program's threads are traced. One per process, as the interpreter's state is."""

    def __init__(self) -> None:
        self._shed = self._shed_here  # one object: a thread's trace function is held by nothing else
        self._main = _PENDING(self._in_main)  # alive for good: the interpreter may call it at any time
        self._hooks: dict[Any, tuple[Callable[..., Any], Callable[..., Any]]] = {}  # module -> hook found, ours
        self._held: collections.deque[Any] = collections.deque(maxlen=_HELD)
        self.forked()

    def forked(self) -> None:
        """A process just forked: its debugger will be another one, which starts anew."""
        self.wanted = True  # something is set or about to be, says the adapter
        self.on = True
        self._pydevd: Any = None
        self._queue = threading.Lock()  # for the two that follow; the main thread holds it in its pending call alone
        self._in_queue = False  # that call is waiting, or runs
        self._asked = False  # and the main thread shall look at what is wanted
        self._rounds = 0  # of turning off that are still to come
        self._looks = 0  # of the settling thread that are still to come
        self._settler: threading.Thread | None = None
        self._lock = threading.RLock()

    # ---- switching, from any thread -----------------------------------------------------------------------------------------------------
    def look(self) -> None:
        """Makes tracing what is needed now. Raises Incompatible, with everything left on."""
        if not APPLIES:
            return
        with self._lock:
            pydevd = debugger(attached=False) or self._pydevd  # one that is gone may have left threads traced
            if pydevd is None:
                return
            if pydevd is not self._pydevd:
                self._meet(pydevd)
            if debugger() is None:
                self._unwatch()
            elif self.wanted or anything_set(pydevd):
                self.turn_on()
                return
            else:
                self._watch_for_uncaught()
            if self.on and threads_run():
                self.on, self._rounds = False, _ROUNDS
            if not self.on and self._rounds:
                self._turn_off()

    def _meet(self, pydevd: Any) -> None:
        """A debugger not seen before."""
        for name in (*_PARTS, *_OCCASIONS):
            _need(pydevd, name)
        self._pydevd, self.on = pydevd, True
        self._held.append(pydevd)
        for name in _OCCASIONS:
            setattr(pydevd, name, self._settling(getattr(pydevd, name)))

    def turn_on(self) -> None:
        """For a stop, or what may lead to one: the other threads have to notice that they shall stand, too."""
        with self._lock:
            if self.on:
                return
            self.on = True
            trace = self._pydevd.trace_dispatch
            threading.settrace(trace)  # before the threads are listed: one that starts meanwhile is met by either
            self._set_others(trace)
            self._switch_main()

    def _turn_off(self) -> None:
        self._rounds -= 1
        if _library() is not None:
            self._gate_new_threads()
            threading.settrace(None)  # type: ignore[arg-type]
            self._set_others(self._shed)
        self._switch_main()

    # ---- where no session looks ---------------------------------------------------------------------------------------------------------
    def settle(self) -> None:
        """Looks now and for some seconds: without a client nothing needs tracing, and the next one shall find it on."""
        self.look()
        with self._lock:
            self._looks = _SETTLING
            if self._settler is None:
                self._settler = hidden_thread(self._settle, "dvm-tracing")
                self._settler.start()

    def _settle(self) -> None:
        while self._settler is not None:  # threads that stood at a stop need a moment to run again
            time.sleep(TICK)
            with self._lock:
                self._looks -= 1
                if not self._looks:
                    self._settler = None
                self.look()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Inside, nothing here touches any thread's tracing: pydevd sets it itself."""
        with self._lock:
            yield

    def _settling(self, occasion: Callable[[], None]) -> Callable[[], None]:
        def then_settle() -> None:
            occasion()
            self.settle()

        return then_settle

    def leave(self) -> None:
        """The agent goes: whatever debugger is left sets its own breakpoints unheard."""
        self.wanted = True
        self.settle()
        self._unwatch()

    # ---- the main thread -----------------------------------------------------------------------------------------------------------------
    def _switch_main(self) -> None:
        if threading.current_thread() is threading.main_thread():
            self._switch_here(sys._getframe())
            return
        with self._queue:
            self._asked = True
            if not self._in_queue:
                self._in_queue = ctypes.pythonapi.Py_AddPendingCall(self._main, None) == 0

    def _in_main(self, _: Any) -> int:
        # Never is one of these calls queued while another runs: a traced thread of Python 3.11 that has one to make, and is making one,
        # enters no function any more, for ever.
        frame = sys._getframe().f_back
        while True:
            with self._queue:
                if not self._asked:
                    self._in_queue = False
                    return 0
                self._asked = False
            if frame is not None:
                self._switch_here(frame)

    def _switch_here(self, frame: FrameType) -> None:
        """The calling thread, the main one, becomes what `on` says. Takes no lock: the program may be anywhere."""
        if self.on:
            self._pydevd.enable_tracing()
            self._pydevd.set_trace_for_frame_and_parents(threading.get_ident(), frame)
        elif not threads_run():  # it is about to stop
            self._rounds += 1
        elif sys.gettrace() is not None:
            self._pydevd.disable_tracing()

    # ---- other threads -------------------------------------------------------------------------------------------------------------------
    def _set_others(self, trace: Callable[..., Any]) -> None:
        """Gives the other threads a trace function, and also the frames they are in, which have one of their own."""
        main = threading.main_thread()
        idents = [thread.ident for thread in _program_threads() if thread is not main and thread.ident is not None]
        if not idents or _library() is None:
            return
        for ident, frame in sys._current_frames().items():
            here: FrameType | None = frame if ident in idents else None
            while here is not None:
                if self._pydevd.get_file_type(here) is None:
                    here.f_trace = trace
                here = here.f_back
        _need(_module("pydevd_tracing"), "set_trace_to_threads")(trace, thread_idents=idents, create_dummy_thread=False)

    def _shed_here(self, frame: FrameType, event: str, argument: Any) -> Any:
        """The trace function of a thread that shall have none: takes itself off with the thread's next call or line."""
        if not self.on:
            self._pydevd.disable_tracing()
        if self.on:  # again by now, or a generator goes on that was left at a time when it was off
            return self._pydevd.trace_dispatch(frame, event, argument)
        return None

    def _gate_new_threads(self) -> None:
        """pydevd starts every new thread traced; not any more while tracing is off."""
        monkey = _module("_pydev_bundle.pydev_monkey")
        original = _need(monkey, "_on_set_trace_for_new_thread")
        if getattr(original, "gate", None) is self:
            return

        def start_tracing(pydevd: Any) -> None:
            if self.on or pydevd is not self._pydevd:
                original(pydevd)

        start_tracing.gate = self  # type: ignore[attr-defined]
        monkey._on_set_trace_for_new_thread = start_tracing

    # ---- uncaught exceptions ------------------------------------------------------------------------------------------------------------
    def _watch_for_uncaught(self) -> None:
        """pydevd sees an exception that ends a thread in its trace function only: without one, in the interpreter's hooks.

        Looked at again and again: the program, or a library that prints tracebacks its own way, may set them as well."""
        for module, unpack in ((sys, lambda *found: found), (threading, lambda found: tuple(found)[:3])):
            hook = module.excepthook  # type: ignore[attr-defined]
            if self._hooks.get(module, (None, None))[1] is not hook:
                ours = self._hook(hook, unpack)
                self._hooks[module] = hook, ours
                module.excepthook = ours  # type: ignore[attr-defined]

    def _unwatch(self) -> None:
        for module, (found, ours) in self._hooks.items():
            if module.excepthook is ours:
                module.excepthook = found
        self._hooks.clear()

    def _hook(self, found: Callable[..., Any], unpack: Callable[..., Uncaught]) -> Callable[..., Any]:
        def excepthook(*arguments: Any) -> Any:
            try:
                self._uncaught(unpack(*arguments))
            except Exception as error:  # the traceback of the program's own exception must come out
                print(f"dvm: no stop at this exception: {type(error).__name__}: {error}", file=sys.stderr)
            return found(*arguments)

        return excepthook

    def _uncaught(self, exception: Uncaught) -> None:
        pydevd = debugger()
        if pydevd is None or pydevd is not self._pydevd or sys.gettrace() is not None or not pydevd.break_on_uncaught_exceptions:
            return  # nobody asks, or a trace function has stopped for it already
        self.turn_on()
        pydevd.trigger_exception_handler(exception, as_uncaught=True)


def anything_set(pydevd: Any) -> bool:
    """Whether pydevd has a breakpoint or filter that stops in a trace function."""
    return any(_need(pydevd, "breakpoints").values()) or any(_need(pydevd, name) for name in _SETTINGS)


def threads_run() -> bool:
    """Whether no thread of the program stands, is to stand, steps or runs code of pydevd."""
    standing = _need(_module("_pydevd_bundle.pydevd_constants"), "STATE_SUSPEND")
    for thread in _program_threads():
        info = getattr(thread, "additional_info", None)
        if info is not None and (_need(info, "pydev_state") == standing or _need(info, "pydev_step_cmd") != -1
                                 or _need(info, "is_tracing") or _need(info, "is_in_wait_loop")):
            return False
    return True


def _program_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate()
            if not getattr(thread, "pydev_do_not_trace", False) and not getattr(thread, "is_pydev_daemon_thread", False)]


def _library() -> Any:
    """debugpy's native library for other threads' trace functions, None if it has none for this machine."""
    return _need(_module("pydevd_tracing"), "_load_python_helper_lib")()


TRACING = Tracing()


@command("tracing")
def tracing(session: Session, arguments: Arguments) -> Answer:
    """on: whether anything set in the Python debugger, or about to be, needs Python to be traced."""
    TRACING.wanted = need(arguments, "on", bool)
    session.look_at_tracing()
    return {"on": TRACING.on}
