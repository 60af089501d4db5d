"""Stops: what stands still, for how long, and what a step does. One per thread, of which the user looks at one; each has an epoch.

The VM stands on one thread at a time; Python may stand on others meanwhile."""
from __future__ import annotations

import os
import sys
import threading
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, Any

from ..frontends import capture
from . import explain, naming, python_stop, tiles
from .commands import Answer, CommandError
from .evaluate import evaluate
from .lookup import Names
from .places import user_frame
from .stepping import TARGETS
from .tracing import TRACING
from .views import CaptureView, LaunchView

if TYPE_CHECKING:
    from .breakpoints import Point
    from .session import Session

_JOIN = 0.05  # seconds between looks whether pydevd wants a thread that waits for its turn to stop


@dataclass
class Stop:
    """A stop that the user may be looking at. joined: the thread sits in pydevd; else it waits here for `go`."""
    epoch: int
    thread: int
    view: Any
    launch: Any = None  # None: Python's own stop inside a captured call
    joined: bool = False
    frame_ref: int = 0
    released: threading.Event = field(default_factory=threading.Event)


def _kind(hit: list[Point]) -> str:
    if not hit:
        return "step"
    return "breakpoint" if any(point.path for point in hit) else "op" if any(point.op for point in hit) else "instruction"


class Stops:
    """The stop handler, and the stop that is current."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._standing: dict[int, Stop] = {}  # thread -> its stop, the latest last
        self._shown = 0  # the thread whose stop the user looks at
        self.epoch = 0
        self.python_paused = 0  # ident of a thread that pydevd stopped by itself, 0 if none
        self._turn = threading.Lock()  # held by the thread that stands at a VM stop
        self._busy = threading.RLock()  # held while the launch is advanced, or its stop ends
        self._passed: tuple[int, int] | None = None  # (launch, instruction) a step has shown already
        self._flushing: Any = None  # the capture whose pending instructions are run for a stop of Python's
        self.found: Answer | None = None  # what a numeric filter found in them: reason and text
        self.enabled = True

    @property
    def current(self) -> Stop | None:
        """The stop that the user looks at; when that is over, the latest of those that stand still."""
        shown = self._standing.get(self._shown)
        return shown or next(iter(reversed(list(self._standing.values()))), None)

    def require(self) -> Stop:
        """The current stop. Raises CommandError if there is none."""
        current = self.current
        if current is None:
            raise CommandError("the tensor program is running: this needs a stop on a tensor line")
        return current

    def select(self, thread: int) -> Answer | None:
        """Makes that thread's stop the current one. Its frame, None if it does not stand."""
        stop = self._standing.get(thread)
        if stop is None:
            return None
        self._shown = thread
        return self.frame(stop)

    def _begin(self, stop: Stop) -> None:
        self._session.references.clear()
        self._standing.pop(stop.thread, None)
        self._standing[stop.thread] = stop
        self._shown = stop.thread

    @property
    def looking(self) -> bool:
        """Whether the user has the program stopped, by either engine."""
        return (self.current is not None) or bool(self.python_paused)

    # ---- the handler: on the launching thread, GIL held ---------------------------------------------------------------------------------
    def handler(self, launch: Any, instruction: int, reason: str, hooks: tuple[int, ...]) -> None:
        """Never raises: an exception would end the user's launch."""
        try:
            self._handle(launch, instruction, reason, hooks)
        except Exception as error:
            self._session.notice(f"a stop failed inside the debugger: {type(error).__name__}: {error}", category="error")

    def _handle(self, launch: Any, instruction: int, reason: str, hooks: tuple[int, ...]) -> None:
        thread = threading.get_ident()
        if self._session.serves(thread) and self._flushing is not None and reason != "hook":
            self._note(launch, instruction, reason)
        if not self.enabled or self._session.serves(thread) or python_stop.inside_debugger():
            return  # a flush on the debugger's own behalf
        if reason == "hook" and self._passed == (launch.number, instruction):
            return
        frame, text = user_frame(sys._getframe()), ""
        view = LaunchView(launch, instruction, self._session.active_capture(), self._session.texts, frame)
        if reason == "measured":
            found = self._session.numeric.look(view)
            if found is None:
                return
            view.at, reason, text = found.instruction, found.name, found.text
        points = self._session.breakpoints.at(hooks) if reason == "hook" else []
        hit = self._stopping(points, view)
        if reason != "hook" or hit or self._session.following.hit(hooks):
            kind = reason if reason != "hook" else _kind(hit)
            if hit and all(point.tile is not None for point in hit):
                self._enter_tiles(view, hit)
            self._hold(view, kind, [point.id for point in hit], text)
            view.show(None)
        if reason == "hook" and self.enabled:
            self._look_at_data(view, instruction)

    @staticmethod
    def _enter_tiles(view: LaunchView, points: list[Point]) -> None:
        """To the first of the tile instructions, in the first tile of their area."""
        Stops._show_tiles(view, *min(point.tile for point in points if point.tile is not None))

    @staticmethod
    def _show_tiles(view: LaunchView, area: int, line: int) -> None:
        if (entered := tiles.enter(view, area)) is not None:
            entered.run_to(line)
            view.show(entered)

    def _note(self, launch: Any, instruction: int, reason: str) -> None:
        """What a filter finds in the flush of a stop of Python's, which stands already: told with that stop."""
        view = LaunchView(launch, instruction, self._flushing, self._session.texts, None)
        if reason != "measured":
            self.found = self.found or {"reason": reason, "text": self._why(reason, view)}
        elif (hit := self._session.numeric.look(view)) is not None:
            self.found = self.found or {"reason": hit.name, "text": hit.text}

    def _look_at_data(self, view: LaunchView, instruction: int) -> None:
        """After the stops before an instruction: whether what it writes, or reads for the first time, is worth one."""
        points = self._session.data.at(view.program.id, instruction)
        with self._busy:
            hit, text = self._session.data.look(points, view, instruction) if points else ([], "")
            if hit:
                view.at = min(max(view.launch.next, instruction), len(view.instructions) - 1)
        if hit:
            self._hold(view, "data", [point.id for point in hit], text)

    def _hold(self, view: LaunchView, kind: str, points: list[int], text: str) -> None:
        """Waits for this thread's turn, and stands."""
        frame = view.python
        while not self._turn.acquire(timeout=_JOIN):
            python_stop.join(frame)  # another thread stands: this one may have to as well
        try:
            if self.enabled:  # the debugger may have gone meanwhile
                self._stand(Stop(self._next_epoch(), threading.get_ident(), view, view.launch), kind, points, frame, text)
        finally:
            self._turn.release()

    def _stopping(self, points: list[Point], view: LaunchView) -> list[Point]:
        """Those of the breakpoints whose conditions are met."""
        names = Names(view, self._session)
        where = view.place

        def tell(text: str) -> None:
            self._session.notice(text, path=where.path, line=where.line, category="logpoint")

        line = f"{os.path.basename(where.path)}:{where.line}" if where.path else ""
        return [point for point in points if point.gate.stops(lambda text: evaluate(naming.spelled(text), names), tell, line)]

    def _next_epoch(self) -> int:
        self.epoch += 1
        return self.epoch

    def _stand(self, stop: Stop, kind: str, points: list[int], frame: FrameType | None, text: str) -> None:
        """Announces the stop and holds this thread until it is over. text: why, if that is known; else a NaN or infinity is explained."""
        self._session.following.end()
        text = text or (self._why(kind, stop.view) if kind in ("nan", "inf") else "")
        top = python_stop.top_user_frame(frame)
        stop.joined = python_stop.attached() and top is not None
        self._begin(stop)
        self._announce(stop, kind, points, text)
        try:
            with capture.set_aside():
                if stop.joined and top is not None:
                    TRACING.turn_on()
                    python_stop.suspend_here(top)
                else:
                    self._await(stop)
        except python_stop.Incompatible as error:
            self._session.notice(str(error), category="error")
            stop.joined = False
            self._await(stop)
        finally:
            with self._busy:  # a step may still be running; the launch goes on only after it
                self._over(stop)

    def _await(self, stop: Stop) -> None:
        """Until the stop is released, or the debugger has gone just as it began."""
        while self.enabled and not stop.released.wait(_JOIN):
            pass

    def _announce(self, stop: Stop, reason: str, points: list[int], text: str = "") -> None:
        self._session.flush_events()
        self._session.connection.event("vmstop", epoch=stop.epoch, reason=reason, bp=points, thread=stop.thread, text=text,
                                       FRAME=self.frame(stop))

    def _why(self, kind: str, view: LaunchView) -> str:
        instruction = view.instructions[view.at]
        result = view.value(len(view.inputs) + view.at)
        return explain.explain(kind, instruction.opcode, instruction.name, result, view.operands(view.at), tuple(instruction.attrs))

    def _over(self, stop: Stop) -> None:
        if self._standing.get(stop.thread) is stop:
            if self.current is stop:
                self._session.references.clear()
            del self._standing[stop.thread]
            self._session.aside.settle()  # what was looked at may be let go of by the program

    # ---- from the adapter --------------------------------------------------------------------------------------------------------------
    def frame(self, stop: Stop) -> Answer:
        """FRAME of the wire, under the path the editor knows the file by."""
        told = stop.view.frame()
        told["path"] = self._session.breakpoints.given_path(told["path"])
        return {**told, "ref": stop.epoch}

    def go(self, thread: int | None = None) -> None:
        """That thread's stop is over, or the current one. A thread inside pydevd leaves when debugpy lets it."""
        stop = self.current if thread is None else self._standing.get(thread)
        if stop is not None:
            self._over(stop)
            stop.released.set()

    def release_all(self) -> None:
        """The debugger has gone: nobody will let anything go any more."""
        self.enabled = False
        for stop in list(self._standing.values()):
            self._over(stop)
            stop.released.set()
        self.python_paused = 0

    def python_stopped(self, ident: int) -> Answer | None:
        """Python stands by itself. Inside a captured call, what was recorded so far is run, and the line is described; `found` is what a
        numeric filter has to say of it."""
        self.found = None
        self._session.following.end()
        frame = user_frame(sys._current_frames().get(ident))
        captures = self._session.captures(ident)
        self.python_paused = ident
        TRACING.turn_on()
        standing = self._standing.get(ident)
        if standing is not None and standing.launch is not None:
            return self.select(ident)
        if standing is not None:
            self._over(standing)  # an earlier stop of Python's: those end without a word to us
        self._end_left(ident)
        if frame is None or not captures:
            return None
        innermost = captures[-1]
        self._flushing = innermost
        try:
            innermost.flush_all()
        finally:
            self._flushing = None
        innermost.inspected = True
        stop = Stop(self._next_epoch(), ident, CaptureView(innermost, self._session.texts, frame), joined=True)
        self._begin(stop)
        return self.frame(stop)

    def look(self) -> None:
        """From time to time: a stop of Python's ends without a word to us."""
        if self.python_paused and python_stop.attached() and not python_stop.is_suspended(self.python_paused):
            self.python_paused = 0
            self._end_left()

    def _end_left(self, present: int = 0) -> None:
        """Ends Python's stops on threads that have gone on, except for one that has just been reported."""
        for stop in list(self._standing.values()):
            if stop.launch is None and stop.thread != present and python_stop.attached() and not python_stop.is_suspended(stop.thread):
                self._over(stop)

    # ---- steps of the VM: on the agent's thread, while the launching thread stands --------------------------------------------------
    def step(self, kind: str) -> None:
        """Advances the launch and announces where it stands then, or that it has ended."""
        with self._busy:
            stop = self.require()
            if stop.launch is None:
                raise CommandError("Python stands on this line, not the tensor program: the step is Python's")
            self._session.references.clear()
            self._session.aside.settle()
            if self._step_in_tiles(stop, kind):
                return
            reached, points, text = self._advance(stop.view, TARGETS[kind](stop.view))
            if reached >= len(stop.view.instructions) and not text:
                self._session.connection.event("vmdone")
                self._over(stop)
                stop.released.set()
                return
            stop.view.at = min(reached, len(stop.view.instructions) - 1)
            stop.epoch = self._next_epoch()
            self._passed = (stop.launch.number, reached)
            self._announce(stop, "data" if text else "breakpoint" if points else "step", points, text)

    def check_enterable(self) -> None:
        """Raises CommandError, with the reason, where a step by tile instruction leads nowhere."""
        view = self.require().view
        if view.tiles is None:
            tiles.line_at(view)

    def _step_in_tiles(self, stop: Stop, kind: str) -> bool:
        """A step that begins and ends between tile instructions. Else the view is at an instruction of the program again."""
        view = stop.view
        if view.tiles is None:
            if kind not in ("into", "tile"):
                return False
            try:
                self._show_tiles(view, *tiles.line_at(view))
            except CommandError:
                return False
            if view.tiles is None:
                return False
        elif kind in ("instruction", "into", "tile") and view.tiles.step():
            view.show(view.tiles)
        else:
            ended = view.tiles if view.tiles.replay.done else None
            view.show(None)
            view.at = min(view.launch.next, len(view.instructions) - 1)
            if ended is None or view.launch.next not in ended.instructions:
                return False
            view.launch.run_until(max(ended.instructions))  # the rest of the area, but for its last instruction, which the step takes
            return False
        points = self._stopping(self._session.breakpoints.tiles_at(view), view)
        stop.epoch = self._next_epoch()
        self._announce(stop, "instruction" if points else "step", [point.id for point in points])
        return True

    def _advance(self, view: LaunchView, target: int) -> tuple[int, list[int], str]:
        """Runs up to `target`, or to a breakpoint before it that stops. (instruction reached, their ids, what was written)."""
        launch = view.launch
        if launch.done:
            return target, [], ""
        for index in range(launch.next, target):
            written = self._session.data.at(view.program.id, index)
            hit_data, text = self._session.data.look(written, view, index) if written else ([], "")
            if hit_data:
                return max(launch.next, index), [point.id for point in hit_data], text
            if index == target - 1:
                break
            index += 1
            points = self._session.breakpoints.on(view.program.id, index)
            if points:
                launch.run_until(index)
                view.at = index
                hit = self._stopping(points, view)
                if hit:
                    return index, [point.id for point in hit], ""
        launch.run_until(target)
        return target, [], ""
