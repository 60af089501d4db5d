"""One debugging session in the debuggee: everything the agent holds, from hello to the end of the connection."""
from __future__ import annotations

import atexit
import collections
import contextlib
import threading
import time
from typing import Any

from dvm_wire.ranks import rank_of

from .. import _core, devices, lastrun
from ..frontends import capture, notices, reloadable
from ..hotreload import Pact, SourceBook
from . import (  # noqa: F401 - each declares commands
    aside,
    breakpoints,
    commands,
    data,
    following,
    inputs,
    kept,
    look,
    memory,
    numeric,
    op_breakpoints,
    pace,
    programs,
    python_stop,
    reload,
    sampling,
    stop_commands,
    switching,
    tensors,
    tiles,
    tracing,
    watches,
    writing,
)
from .commands import Answer, Arguments, CommandError, command, need
from .connection import TICK, Connection, hidden_thread
from .evaluate import Refused
from .places import LIBRARIES, Texts
from .stops import Stops

_SETTINGS: dict[str, Any] = {"capture": "breakpoint", "sampleEvery": 100, "snapshotMaxBytes": 1 << 20, "snapshotTimeoutMs": 100}
_CAPTURE = ("breakpoint", "watched", "all")
_RANGES: dict[str, tuple[int, int]] = {"sampleEvery": (1, 1 << 31), "snapshotMaxBytes": (0, 1 << 40), "snapshotTimeoutMs": (1, 60_000)}
_EVENTS_A_SECOND = 4000  # half of what the adapter can take: answers do not wait behind the others. What is more, the core leaves out
_TOGETHER = 1 / 45  # seconds between events that gather what is told of several watches: more than 30 frames a second need
_EVENTS_AT_ONCE = 64  # of up to snapshotMaxBytes each: requests are served between them


class Session:
    """Made when the connection is there; its parts live as long as it does. The source book outlives it: texts in force stay known."""

    def __init__(self, connection: Connection, book: SourceBook | None = None) -> None:
        self.connection = connection
        self.settings = dict(_SETTINGS)
        self.book = book or SourceBook(LIBRARIES)
        self.texts = Texts(self.book)
        self.references = tensors.References()
        self.aside = aside.Aside()
        self.breakpoints = breakpoints.Breakpoints(self)
        self.data = data.DataBreakpoints(self)
        self.switching = switching.Switching(self)
        self.kept = kept.Kept()
        self.inputs = inputs.Inputs(self)
        self.watches = watches.Watches(self)
        self.numeric = numeric.Numeric(lambda text: self.notice(text, category="error"))
        self.stops = Stops(self)
        self.reloader = reload.make_reloader(self, self.book)
        self.last_run = lastrun.Recorder(self.texts.raw_line)
        self.rank = rank_of()  # None: of no job
        self.pacts: dict[str, Pact] = {}  # edits that other ranks shall take as well, by ticket
        self.pace = pace.Pace()
        self._hooks = 0
        self.sampling = sampling.Sampling(self.new_hook())
        self.following = following.Following(self)
        self._events: collections.deque[dict[str, Any]] = collections.deque()
        self._last_tick = 0.0
        self._together: list[Answer] = []  # snapshots for the next event that gathers them
        self._told_together = 0.0  # when the last one went out
        self._left_out, self._told_left_out = 0, 0.0  # snapshots that the core had no room for
        self._last_launches = -1
        self._prepared = False
        self._tracing_known = True

    # ---- life --------------------------------------------------------------------------------------------------------------------------
    def start(self) -> None:
        self.book.scan()
        connection = self.connection
        connection.on_message = self._serve
        connection.on_tick, connection.on_events, connection.on_gone = self._tick, self._poll, self.end
        connection.events_fd = _core.event_fd()
        notices.add_sink(self._notice_sink)
        _core.set_program_handler(self._new_program)
        capture.on_replay = self._replayed
        _core.set_stop_handler(self.stops.handler)
        _core.memory_log(True)  # bounded, and too cheap to measure: the memory view shows the time before it was opened, too
        atexit.register(self.last_run.stop)
        connection.start()

    def end(self) -> None:
        """The debugger has gone: no hook, no check and no stop is left behind, and the program runs on. A part that fails keeps none of the
        others from ending; its error is raised after them."""
        with contextlib.ExitStack() as parts:  # the last one entered ends first
            for part in reversed((
                    self._give_up, self.stops.release_all, self.breakpoints.clear, self.data.clear, self.watches.clear,
                    self.sampling.stop, self.following.end, self.switching.forget, lambda: self.set_filters({}),
                    lambda: _core.set_capture_timeout(_SETTINGS["snapshotTimeoutMs"]), lambda: _core.set_program_handler(None),
                    self._end_replays, self.inputs.end, lambda: _core.set_stop_handler(None), _core.clear_hooks,
                    lambda: _core.memory_log(False),
                    tracing.TRACING.leave, lambda: notices.remove_sink(self._notice_sink), self.last_run.stop,
                    lambda: atexit.unregister(self.last_run.stop))):
                parts.callback(part)

    def forked(self) -> None:
        """In the child, before it ends there: a thread that held one of the locks is the parent's, and would never let it go."""
        for part in (self.watches, self.inputs, self.sampling, self.following):
            part.lock = threading.Lock()

    def _give_up(self) -> None:
        for pact in list(self.pacts.values()):
            pact.decide(False, "the debugger has gone")

    def _serve(self, message: dict[str, Any]) -> None:
        if message.get("cmd") not in ("watch", "unwatch"):  # of these there may be many
            self.watches.settle()
        commands.run(self, message, self.connection.send)

    # ---- for the parts -----------------------------------------------------------------------------------------------------------------
    def new_hook(self) -> int:
        self._hooks += 1
        return self._hooks

    def serves(self, thread: int) -> bool:
        """Whether that thread is the agent's own."""
        return self.connection.thread is not None and self.connection.thread.ident == thread

    @staticmethod
    def active_capture() -> Any:
        return capture.launching()

    @staticmethod
    def captures(ident: int) -> list[Any]:
        return capture.captures().get(ident, [])

    @staticmethod
    def step() -> int:
        return reloadable.step()

    def notice(self, text: str, *, path: str = "", line: int = 0, category: str = "notice") -> None:
        self.connection.event("notice", text=text, path=path, line=line, category=category)

    def _notice_sink(self, notice: dict[str, Any]) -> None:
        self.later("notice", **notice)

    def later(self, name: str, /, **fields: Any) -> None:
        """An event from the training thread, which must not wait for a socket: sent with the next tick, or before the next stop."""
        self._events.append({"ev": name, **fields})

    def leave_out(self, snapshots: int) -> None:
        """So many were not sent, which is told from time to time."""
        self._left_out += snapshots

    def flush_events(self) -> None:
        while self._events:
            self.connection.send(self._events.popleft())

    def set_filters(self, conditions: dict[str, str]) -> Answer:
        """By filter its condition, "" for what it means by itself. Answers those refused, with reasons; the others are in force."""
        accepted, refused = [], {}
        for name, text in conditions.items():
            try:
                accepted.append(numeric.Condition.of(name, text))
            except Refused as error:
                refused[name] = str(error)
        self.numeric.set(accepted)
        return {"refused": refused}

    # ---- the core's calls ----------------------------------------------------------------------------------------------------------------
    def _new_program(self, program: Any) -> None:
        """On the capturing thread, before the program's first launch. Never raises."""
        try:
            active = capture.launching()
            graph_mode = active is not None and active.mode == "graph"
            self.breakpoints.new_program(program, graph_mode)
            self.following.new_program(program, graph_mode)
            self.data.new_program(program)
            self.watches.new_program(program)
            self.sampling.new_program(program)
            self.later("program", id=program.id, name=program.name, backward=program.backward, instructions=len(program.instructions),
                       areas=len(program.areas))
        except Exception as error:
            text = f"a new program could not be prepared for debugging: {type(error).__name__}: {error}"
            self.later("notice", text=text, path="", line=0, category="error")

    def _replayed(self, function: str) -> None:
        """On the capturing thread, before a replay. Never raises."""
        try:
            self.breakpoints.replayed(function)
        except Exception as error:
            self.later("notice", text=f"breakpoints could not be set in {function}: {type(error).__name__}: {error}", path="", line=0,
                       category="error")

    def _end_replays(self) -> None:
        capture.on_replay = None

    def _poll(self) -> float:
        events = _core.poll_events(_EVENTS_AT_ONCE)
        if lost := sum(event["count"] for event in events if event["kind"] == "dropped"):  # those before all others here
            self.leave_out(lost)
            self.watches.lost()
        for event in events:
            if event["kind"] == "dropped":
                continue
            sampled = self.sampling.snapshot(event)
            for told in self.watches.snapshots(event) if sampled is None else [sampled]:
                if "stats" in told and "of" not in told and "input" not in told:
                    self.last_run.statistics(told["program"], told["instruction"], told["stats"], told["step"])
                self._tell(told)
        self._tell_kept()
        return max(len(events) / _EVENTS_A_SECOND, self._tell_together())

    def _tell(self, told: Answer) -> None:
        if self.watches.together(told["watchId"]):
            self._together.append(told)
        else:
            self.connection.event("snapshot", **told)

    def _tell_together(self) -> float:
        """Sends what was gathered once its time has come; else gives the seconds until then."""
        wait = self._told_together + _TOGETHER - time.monotonic()
        if not self._together or wait > 0:
            return wait if self._together else 0.0
        gathered, self._together, self._told_together = self._together, [], time.monotonic()
        self.connection.event("snapshots", snapshots=gathered)
        return 0.0

    def _tell_left_out(self) -> None:
        now = time.monotonic()
        if self._left_out and now - self._told_left_out >= 1.0:
            self.connection.event("dropped", count=self._left_out)
            self._left_out, self._told_left_out = 0, now

    def _tell_kept(self) -> None:
        for told in self.kept.waiting():
            self._tell(told)

    def _tick(self) -> None:
        self._tell_together()
        now = time.monotonic()
        if now - self._last_tick < TICK:
            return
        self._last_tick = now
        self.watches.settle()
        self._tell_kept()
        self._tell_left_out()
        self.watches.look()
        self.flush_events()
        self.book.scan()
        self.stops.look()
        if python_stop.attached() != self._prepared:
            self._prepared = not self._prepared
            self._prepare_python()
        self.look_at_tracing()
        self.last_run.look()
        self.pace.look()
        launches = _core.stats()["launches"]
        if launches != self._last_launches:
            self._last_launches = launches
            self.connection.event("step", step=self.step(), launches=launches)

    def _prepare_python(self) -> None:
        try:
            python_stop.prepare(self.reloader.book.get)
        except python_stop.Incompatible as error:
            self.notice(str(error), category="error")

    def look_at_tracing(self) -> None:
        """Python is traced while that is needed, and not else."""
        if self._tracing_known:
            try:
                tracing.TRACING.look()
            except python_stop.Incompatible as error:
                self._tracing_known = False
                self.notice(f"Python stays traced, which slows its calls: {error}", category="error")


@command("configure")
def configure(session: Session, arguments: Arguments) -> Answer:
    """The settings of the `dvm` object in the launch configuration; those that are not the agent's business are passed over.

    Nothing is changed if a value is refused."""
    given = {name: need(arguments, name, type(default), default) for name, default in session.settings.items()}
    if given["capture"] not in _CAPTURE:
        raise CommandError(f"capture is {given['capture']!r}; it must be one of {', '.join(_CAPTURE)}")
    for name, (least, most) in _RANGES.items():
        if not least <= given[name] <= most:
            raise CommandError(f"{name} is {given[name]}; it must be from {least} to {most}")
    session.settings.update(given)
    _core.set_capture_timeout(given["snapshotTimeoutMs"])
    if given["capture"] == "all":
        session.sampling.start(given["sampleEvery"], given["snapshotMaxBytes"])
    else:
        session.sampling.stop()
    device = arguments.get("device")
    if isinstance(device, str) and device:
        try:
            devices.set_device(device)
        except devices.DeviceError as error:
            raise CommandError(str(error)) from None
    return {}


@command("detach")
def detach(session: Session, arguments: Arguments) -> Answer:
    """The session ends, the process runs on, also one that the debugger launched."""
    def close() -> None:
        time.sleep(0.05)  # after the answer is out
        session.connection.close()

    hidden_thread(close, "dvm-detach").start()
    return {}
