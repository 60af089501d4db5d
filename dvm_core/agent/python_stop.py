"""Everything that touches pydevd, the engine inside debugpy: stopping a thread in place, joining a stop, hiding our own files.

pydevd has no public interface for this. Each internal used is looked up through `_need`, which says what is missing and in which version,
and tests/python/test_agent_pydevd.py exercises every one of them; debugpy's version is pinned in pyproject.toml.

A thread is suspended the way pydevd's own `trigger_exception_handler` does it: mark the thread, then enter pydevd's wait loop on that very
thread with the user's frame. Stepping, evaluating and continuing work from there as from any stop."""
from __future__ import annotations

import collections
import importlib
import os
import socket
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))
_OURS = os.path.dirname(_HERE) + os.sep
_PACKAGE = __name__.partition(".")[0]
_STREAMS = 256  # that are held, four for an evaluation


class Incompatible(RuntimeError):
    """This debugpy lacks something that a stop needs."""


def _need(thing: Any, *names: str) -> Any:
    """`thing.a.b` for names a, b. Raises Incompatible."""
    for name in names:
        try:
            thing = getattr(thing, name)
        except AttributeError:
            raise _incompatible(f"{getattr(thing, '__name__', type(thing).__name__)}.{name}") from None
    return thing


def _module(name: str) -> Any:
    """Raises Incompatible."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise _incompatible(f"module {name} ({error})") from None


def _incompatible(lacks: str) -> Incompatible:
    version = getattr(sys.modules.get("debugpy"), "__version__", "?")
    return Incompatible(f"debugpy {version} has no {lacks}: stops in the tensor engine need debugpy 1.8.22")


def debugger(attached: bool = True) -> Any:
    """pydevd's object for this process, None while no debugpy client is attached; with attached=False None only where pydevd was not
    started."""
    constants = sys.modules.get("_pydevd_bundle.pydevd_constants")
    if constants is None:
        return None
    found = _need(constants, "get_global_debugger")()
    return found if found is not None and (not attached or _need(found, "is_attached")()) else None


def attached() -> bool:
    return debugger() is not None


# ---- once per session --------------------------------------------------------------------------------------------------------------
def prepare(in_force: Callable[[str], str | None] | None = None) -> None:
    """Makes pydevd answer at once, lose no request, pass over our files, and bind lines by the text that runs. Cheap to repeat; does
    nothing without pydevd.

    in_force: gives a file's text that the running code was compiled from, None where that is not known; without it lines are bound by the
    files on disk, unless an earlier call said otherwise."""
    pydevd = debugger()
    if pydevd is not None:
        _no_delay(pydevd)
        _one_queue_a_thread(pydevd)
        _hold_streams()
        _hide_files(pydevd)
        _pause_in_user_code(pydevd)
        if in_force is not None:
            _bind_lines(in_force)


def prepare_with_client(in_force: Callable[[str], str | None]) -> None:
    """Prepares as soon as a client has come: the first stop is like all others."""
    pydevd = debugger(attached=False)
    if pydevd is None:
        return  # its client has gone already
    done = _need(pydevd, "on_configuration_done")

    def then_prepare() -> None:
        done()
        prepare(in_force)

    pydevd.on_configuration_done = then_prepare


def _no_delay(pydevd: Any) -> None:
    # pydevd writes header and body of a reply in two sends; the second then waits 40 ms for the other side's acknowledgement.
    sock = getattr(getattr(pydevd, "writer", None), "sock", None)
    if isinstance(sock, socket.socket):
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:
            pass


class _MadeOnce(dict[str, Any]):
    """A defaultdict from which threads that ask for a missing key at the same time get the same value."""

    def __init__(self, default: Any) -> None:
        super().__init__(default)
        self._make = _need(default, "default_factory")

    def __missing__(self, key: str) -> Any:
        return self.setdefault(key, self._make())


def _one_queue_a_thread(pydevd: Any) -> None:
    # A thread that begins to wait and the server thread that posts its first request each make its queue, and the event that wakes it. A
    # defaultdict keeps the last one made: the thread then waits on the other for as long as the stop lasts, and the request gets no answer.
    for name in ("_cmd_queue", "_thread_events"):
        made = _need(pydevd, name)
        if not isinstance(made, _MadeOnce):
            setattr(pydevd, name, _MadeOnce(made))


class _Held:
    """A class of pydevd's whose newest instances are held."""

    def __init__(self, make: Any) -> None:
        self._make = make
        self._newest: collections.deque[Any] = collections.deque(maxlen=_STREAMS)

    def __call__(self, *arguments: Any, **more: Any) -> Any:
        made = self._make(*arguments, **more)
        self._newest.append(made)
        return made


def _hold_streams() -> None:
    # An evaluation in the console puts a stream of pydevd's in sys.stdout and takes it away again. print() holds no reference to the stream
    # it writes to, so a program that prints meanwhile on another thread would write to one that is freed.
    streams = _module("_pydevd_bundle.pydevd_io")
    made = _need(streams, "IORedirector")
    if not isinstance(made, _Held):
        streams.IORedirector = _Held(made)


def _hide_files(pydevd: Any) -> None:
    """Puts our package among the step filters, as a rule in the launch configuration would: no step lands in it, no stack shows it.

    Not among pydevd's own files: a step out of a user's function that we have called would then find no frame to return to."""
    filters = _need(pydevd, "_files_filtering", "_exclude_filters")
    make = _need(_module("_pydevd_bundle.pydevd_filtering"), "ExcludeFilter")
    ours = [make(_PACKAGE, True, False), *(make(path, True, True) for path in sys.orig_argv[1:2] if os.path.basename(path) == "dvm")]
    if not set(ours) <= set(filters):  # the second: of `dvm run`, whose own few lines are at the bottom of the stack
        api = _need(_module("_pydevd_bundle.pydevd_api"), "PyDevdAPI")()
        _need(api, "set_exclude_filters")(pydevd, [*ours, *filters])
        _need(pydevd, "clear_dont_trace_start_end_patterns_caches")()  # what ran as user code before must be looked at again


def _pause_in_user_code(pydevd: Any) -> None:
    """pydevd lets a pause stand in a file it filters out where user code has called that directly, shows the caller's frame, and waits
    for the next line of the one it does not show: the next step is lost. Here the pause stands in the frame that is shown."""
    wait = _need(pydevd, "do_wait_suspend")
    if getattr(wait, "in_user_code", False):
        return
    pause = _need(_module("_pydevd_bundle.pydevd_comm_constants"), "CMD_THREAD_SUSPEND")

    def wait_in_user_code(thread: threading.Thread, frame: FrameType, *more: Any, **named: Any) -> None:
        paused = getattr(thread, "stop_reason", None) == pause and isinstance(frame, FrameType)
        wait(thread, top_user_frame(frame) or frame if paused else frame, *more, **named)

    wait_in_user_code.in_user_code = True  # type: ignore[attr-defined]
    pydevd.do_wait_suspend = wait_in_user_code


def _bind_lines(in_force: Callable[[str], str | None]) -> None:
    """pydevd moves a breakpoint to a line with code by the file on disk; after a save that was refused the program runs another text."""
    api = _module("_pydevd_bundle.pydevd_api")
    lines_of = _need(api, "_get_code_lines")
    if getattr(lines_of, "of_text_in_force", False):
        return

    def code_lines(code: Any) -> Any:  # a file name or, from pydevd itself, a code object
        text = in_force(code) if isinstance(code, str) else None
        return lines_of(code if text is None else compile(text, code, "exec", 0, dont_inherit=True))

    code_lines.of_text_in_force = True  # type: ignore[attr-defined]
    api._get_code_lines = code_lines


def code_changed() -> None:
    """After `__code__` was swapped: skip caches are dropped and breakpoints armed in the new code."""
    pydevd = debugger()
    if pydevd is not None:
        _need(pydevd, "on_breakpoints_changed")()


# ---- frames and states ---------------------------------------------------------------------------------------------------------------
def top_user_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame, from `frame` outwards, that a stop may show on top; outside of pydevd the innermost that is not ours.

    A frame that pydevd filters out will not do: the next step from it would be lost."""
    pydevd = debugger()
    here = frame
    while here is not None:
        if not here.f_code.co_filename.startswith((_OURS, "<frozen")) and (pydevd is None or _shown(pydevd, here)):
            return here
        here = here.f_back
    return None


def _shown(pydevd: Any, frame: FrameType) -> bool:
    kind = _need(pydevd, "get_file_type")(frame)
    name = frame.f_code.co_filename
    if kind is not None and not (kind == _need(pydevd, "LIB_FILE") and _need(pydevd, "in_project_scope")(frame, name)):
        return False
    return not (_need(pydevd, "is_files_filter_enabled") and _need(pydevd, "apply_files_filter")(frame, name, False))


def _info(thread: threading.Thread | None = None) -> Any:
    return getattr(thread or threading.current_thread(), "additional_info", None)


def inside_debugger() -> bool:
    """Whether this thread runs code on pydevd's behalf: a condition, or an expression evaluated at a stop. It cannot stop again there."""
    info = _info()
    return attached() and info is not None and bool(_need(info, "is_tracing") or _need(info, "is_in_wait_loop"))


def is_suspended(ident: int) -> bool:
    """Whether that thread sits in pydevd's wait loop."""
    for thread in threading.enumerate():
        if thread.ident == ident:
            info = _info(thread)
            return attached() and info is not None and bool(_need(info, "is_in_wait_loop"))
    return False


# ---- stopping ------------------------------------------------------------------------------------------------------------------------
def suspend_here(frame: FrameType) -> None:
    """Blocks the calling thread in pydevd's wait loop with `frame` on top, until the client continues or steps it.

    The client gets `stopped` for it with reason breakpoint; other Python threads are stopped, too. Raises Incompatible."""
    pydevd = debugger()
    if pydevd is None:
        raise Incompatible("no Python debugger is attached")
    reason = _need(_module("_pydevd_bundle.pydevd_comm_constants"), "CMD_SET_BREAK")
    thread = threading.current_thread()
    _need(pydevd, "set_additional_thread_info")(thread)
    with _untraced(pydevd, thread):
        _need(pydevd, "set_suspend")(thread, reason, suspend_other_threads=True)
        _need(pydevd, "do_wait_suspend")(thread, frame, "line", None)


def stop_at_next_line(frame: FrameType) -> None:
    """What `debugpy.breakpoint()` does, for that frame instead of its caller's. Nothing without a debugger."""
    if attached():
        _need(_module("pydevd"), "settrace")(
            suspend=True, trace_only_current_thread=True, patch_multiprocessing=False, notify_stdin=False, stop_at_frame=frame)


def join(frame: FrameType | None) -> bool:
    """Enters the wait loop if pydevd wants this thread stopped already (pause, or another thread's stop) and no trace event will come
    to do it. No second `stopped` goes out. False if it is not wanted."""
    pydevd = debugger()
    user = top_user_frame(frame)
    if pydevd is None or user is None:
        return False
    thread = threading.current_thread()
    info = _need(pydevd, "set_additional_thread_info")(thread)
    suspended = _need(_module("_pydevd_bundle.pydevd_constants"), "STATE_SUSPEND")
    if _need(info, "pydev_state") != suspended or _need(info, "is_tracing") or _need(info, "is_in_wait_loop"):
        return False
    with _untraced(pydevd, thread):
        _need(pydevd, "do_wait_suspend")(thread, user, "line", None)
    return True


class _untraced:
    """pydevd's tracing of this thread is off inside; on the way out a step the client asked for turns it on again."""

    def __init__(self, pydevd: Any, thread: threading.Thread) -> None:
        self._pydevd, self._info = pydevd, _info(thread)
        self._monitoring: Any = None
        self._saved: Any = None

    def __enter__(self) -> None:
        _need(self._info, "is_tracing")
        if _need(_module("_pydevd_bundle.pydevd_constants"), "PYDEVD_USE_SYS_MONITORING"):  # Python 3.12 and later
            self._monitoring = _need(_module("_pydevd_sys_monitoring.pydevd_sys_monitoring"))
            self._saved = _need(self._monitoring, "suspend_current_thread_tracing")()
        self._info.is_tracing += 1

    def __exit__(self, *error: Any) -> None:
        self._info.is_tracing -= 1
        if self._monitoring is None and _need(self._info, "pydev_step_cmd") != -1:
            _need(self._pydevd, "enable_tracing")()
        if self._monitoring is not None and self._saved:
            _need(self._monitoring, "resume_current_thread_tracing")()
