"""The program of `dvm debug`: its breakpoints, filters and watches, its stops and its end, over DAP."""
from __future__ import annotations

import linecache
import os
import queue
import re
import sys
import time
from collections.abc import Callable
from typing import Any

from dvm_wire import outcome

from .client import Client, Message, RequestFailed
from .terminal_text import moved

ANSWER = 60.0  # seconds: an expression of the user may compute
LOOK = 0.2  # seconds between looks at whether the adapter is still there
STEPPED_OVER = "Frame skipped from debugging during step-in"  # debugpy's advice on a launch configuration, which there is none of here
DEEPEST = 50  # frames that are asked for
PLACE = re.compile(r"(?:(?P<file>.+):)?(?P<line>\d+)")
POINT = re.compile(r"(?P<place>(?:\S.*?:)?\d+)(?:\s+mode\s+(?P<mode>\w+))?(?:\s+if\s+(?P<condition>.+?))?(?:\s+mode\s+(?P<late>\w+))?\s*")


class Mistake(Exception):
    """A command that cannot be meant; its text is one line for the user."""


class Ended(Exception):
    """The program, or the session, is over. code: our exit code."""

    def __init__(self, code: int, text: str = "") -> None:
        super().__init__(text)
        self.code = code


class Debuggee:
    """One program, launched or attached to. `said` gets the lines that the session has to say by itself, from the reader's thread."""

    def __init__(self, arguments: Message, said: Callable[[str], None]) -> None:
        # Standard output is the program's; the adapter has a process group of its own, since Ctrl-C here means a pause.
        self.client = Client([sys.executable, "-m", "dvm_adapter"], keep=("initialized",), own_group=True)
        self.arguments = arguments
        self._say = said
        self.points: dict[str, dict[int, Message]] = {}  # file -> line -> what was asked, and "id", "verified", "message", "once"
        self.filters: dict[str, str] = {}
        self.watches: dict[int, Message] = {}  # id -> the answer, and "last": its newest snapshot
        self.attached = arguments.get("request") == "attach"
        self.stop: Message | None = None
        self.frames: list[Message] = []
        self.frame = 0
        self.waiting = False
        self._launched: queue.Queue[Message] | None = None
        self._begun = False
        self._code: int | None = None
        self._happened: queue.SimpleQueue[tuple[str, Message]] = queue.SimpleQueue()  # also put to by a signal handler
        for event in ("stopped", "exited", "terminated"):
            self.client.on(event, lambda body, event=event: self._happened.put((event, body)))  # type: ignore[misc]
        self.client.on("output", self._output)
        self.client.on("breakpoint", self._point_changed)
        self.client.on("dvm/snapshot", self._snapshot)
        self.client.on("dvm/reload", lambda body: self.said(outcome(body)))
        self.client.on("dvm/notice", lambda body: self.said(str(body.get("text", ""))))

    # ---- the program's course
    def prepare(self) -> None:
        """Starts the program, which waits for `go` before its first line, or attaches to one, which runs on."""
        self._launched = self.client.prepare(**self.arguments)
        known = self.client.capabilities.get("exceptionBreakpointFilters") or []
        self.known_filters = {str(entry["filter"]): str(entry.get("description") or "").partition(". ")[0] for entry in known}
        self.set_filters({str(entry["filter"]): "" for entry in known if entry.get("default")})
        if self.attached:
            self._begin()

    def go(self, command: str = "continue", pause_after: float | None = None, **arguments: Any) -> Message:
        """Lets the program go on, or begin, until its next stop; raises Ended at its end."""
        self.waiting = True  # from here on Ctrl-C is a pause
        try:
            if not self._begun:
                self._begin()
            elif self.stop is not None:  # else it runs already, and is only waited for
                self.client.request(command, timeout=ANSWER, threadId=self.stop["threadId"], **arguments)
                self.stop, self.frames, self.frame = None, [], 0
            return self._wait(None if pause_after is None else time.monotonic() + pause_after)
        finally:
            self.waiting = False

    def restart(self) -> Message:
        """Ends the program and lets it begin anew, until its next stop."""
        if not self._begun:
            return self.go()
        self.waiting = True
        try:
            self.client.request("restart", timeout=ANSWER)
            self.stop, self.frames, self.frame = None, [], 0
            return self._wait(None)
        finally:
            self.waiting = False

    def _begin(self) -> None:
        assert self._launched is not None
        self._begun = True
        try:
            self.client.run(self._launched)
        except RequestFailed as error:
            raise Ended(1, told_by(error)) from None

    def _wait(self, pause_at: float | None) -> Message:
        asked = False
        while True:
            if pause_at is not None and time.monotonic() >= pause_at and self._pause():
                pause_at = None
            try:
                name, body = self._happened.get(timeout=LOOK)
            except queue.Empty:
                if self.client.closed:
                    raise Ended(1, "the debug adapter has ended") from None
                continue
            if name == "interrupt":
                if asked:
                    raise Ended(130, "ended by Ctrl-C")
                asked, pause_at = True, 0.0
                self.said("pausing; Ctrl-C again ends the session")
            elif name == "stopped":
                return self._stopped(body)
            else:
                self._over(name, body)

    def _pause(self) -> bool:
        """False where there is no thread yet, or none any more, to be paused."""
        try:
            threads = self.client.request("threads", timeout=ANSWER)["threads"]
            if threads:
                self.client.request("pause", timeout=ANSWER, threadId=threads[0]["id"])
            return bool(threads)
        except RequestFailed:
            return False

    def interrupt(self) -> None:
        """Ctrl-C while the program runs; safe in a signal handler."""
        self._happened.put(("interrupt", {}))

    def look(self) -> None:
        """Raises Ended if the program has ended while it stood at a stop."""
        while not self._happened.empty():
            self._over(*self._happened.get())
        if self.client.closed:
            raise Ended(1, "the debug adapter has ended")

    def _over(self, name: str, body: Message) -> None:
        if name == "exited":
            self._code = int(body.get("exitCode") or 0)
        elif name == "unread":
            raise Ended(1)
        elif name == "terminated":
            code = self._code if self._code is not None else 0 if self.attached else 1
            # as a shell says it
            raise Ended(code if code >= 0 else 128 - code, f"the program ended with exit code {code}" if self._code is not None else
                        "the program has ended")

    def _stopped(self, body: Message) -> Message:
        self.stop, self.frame = body, 0
        self.frames = self.stack(body["threadId"])
        hits = set(body.get("hitBreakpointIds") or [])
        for path, points in self.points.items():
            if once := [line for line, point in points.items() if point["once"] and point["id"] in hits]:
                self.set_points(path, {line: point for line, point in points.items() if line not in once})
                break
        return body

    def stopped(self) -> Message:
        if self.stop is None:
            raise Mistake("the program runs: continue waits for it, pause stops it" if self._begun else
                          "the program does not run yet: run starts it")
        return self.stop

    # ---- frames and files
    def real_frames(self) -> list[Message]:
        """Without the label between the tensor line and Python."""
        self.stopped()
        return [frame for frame in self.frames if frame.get("presentationHint") != "label"]

    def current(self) -> Message:
        return self.real_frames()[self.frame]

    def renew(self) -> None:
        """The stack anew: its ids and lines may have changed with the code."""
        if self.stop is not None:
            self.frames = self.stack(self.stop["threadId"])
            self.frame = min(self.frame, len(self.real_frames()) - 1)

    def stack(self, thread: int) -> list[Message]:
        """The thread's frames, those of code from before an edit with its text."""
        frames = self.client.stack(thread, startFrame=0, levels=DEEPEST)
        for frame in frames:
            source = frame.get("source") or {}
            if (number := source.get("sourceReference")) and os.path.isfile(str(source.get("path"))):
                frame["text"] = self.client.request("source", source=source, sourceReference=number)["content"].splitlines()
        return frames

    def file(self, name: str) -> str:
        """The path of a file as a user names it: from here, beside the script, or one of the stack."""
        beside = os.path.join(os.path.dirname(str(self.arguments.get("program", ""))), name)
        stack = [str((frame.get("source") or {}).get("path")) for frame in self.frames]
        for path in (os.path.expanduser(name), beside, *(path for path in stack if os.path.basename(path) == name)):
            if os.path.isfile(path):
                return os.path.abspath(path)
        raise Mistake(f"there is no file {name}")

    def place(self, text: str) -> tuple[str, int]:
        """FILE:LINE, or LINE of the file we stand in (before the start: the script)."""
        match = PLACE.fullmatch(text.strip())
        if not match:
            raise Mistake(f"{text.strip()!r} is no place: FILE:LINE, or LINE of this file")
        here = (self.current().get("source") or {}).get("path") if self.stop else self.arguments.get("program")
        if not match["file"] and not here:
            raise Mistake("a line of which file? FILE:LINE")
        path = self.file(match["file"] or str(here))
        linecache.checkcache(path)
        line, last = int(match["line"]), len(linecache.getlines(path))
        if not 1 <= line <= last:
            raise Mistake(f"{os.path.basename(path)} has lines 1 to {last}, not {line}")
        return path, line

    # ---- breakpoints, filters, watches
    def add_point(self, text: str, once: bool) -> tuple[str, Message, Message | None]:
        """The file, the breakpoint, and a different one that it replaces."""
        match = POINT.fullmatch(text)
        if not match:
            raise Mistake("break FILE:LINE [if CONDITION] [mode forward|backward|both]")
        path, line = self.place(match["place"])
        point: Message = {"line": line, "once": once}
        for name, value in (("condition", match["condition"]), ("mode", match["mode"] or match["late"])):
            if value:
                point[name] = value
        before = self.points.get(path, {})
        old = before.get(line)
        replaced = old if old and any(old.get(name) != point.get(name) for name in ("condition", "mode", "once")) else None
        self.set_points(path, {**before, line: point})
        if self.points[path][line].get("reason") == "failed":
            told = str(self.points[path][line].get("message"))
            self.set_points(path, before)
            raise Mistake(told)
        return path, self.points[path][line], replaced

    def set_points(self, path: str, points: dict[int, Message]) -> None:
        names = ("line", "condition", "mode")
        asked: list[int | Message] = [{name: point[name] for name in names if name in point} for point in points.values()]
        for point, told in zip(points.values(), self.client.set_breakpoints(path, asked)):  # noqa: B905 - one for one
            _take(point, told)
        self.points[path] = points

    def _point_changed(self, body: Message) -> None:
        told = body.get("breakpoint") or {}
        for path, points in list(self.points.items()):
            for point in list(points.values()):
                if point.get("id") == told.get("id"):
                    before = point.get("at")
                    _take(point, told)
                    if point.get("at") not in (None, before):
                        self.said(f"breakpoint {point['id']} {moved(path, point)}")

    def set_filters(self, filters: dict[str, str]) -> None:
        """Raises Mistake, with the filters as they were, if one is not taken."""
        options = [{"filterId": name, **({"condition": condition} if condition else {})} for name, condition in filters.items()]
        answers = self.client.request("setExceptionBreakpoints", timeout=ANSWER, filters=[], filterOptions=options).get("breakpoints") or []
        wrong = [str(told.get("message")) for told in answers if not told.get("verified")]
        if wrong and filters != self.filters:
            self.set_filters(self.filters)
            raise Mistake("; ".join(wrong))
        self.filters = filters

    def watch(self, expression: str, every: int) -> Message:
        told = self.client.request("dvm/watch", timeout=ANSWER, expression=expression, what="stats", everyN=every)
        return self.watches.setdefault(told["watchId"], {"every": every, **told})

    def _snapshot(self, body: Message) -> None:
        # One that comes before `watch` has its answer is left out: the next follows.
        if body.get("watchId") in self.watches:
            self.watches[body["watchId"]]["last"] = body

    # ---- what the session says by itself
    def _output(self, body: Message) -> None:
        category, text = body.get("category"), str(body.get("output", ""))
        if category in ("stdout", "stderr"):
            self.said(text, lambda text: print(text, end="", flush=True, file=sys.stdout if category == "stdout" else sys.stderr))
        elif category == "important" and not text.startswith(STEPPED_OVER):
            self.said(text.rstrip("\n"))

    def said(self, text: str, say: Callable[[str], None] | None = None) -> None:
        """Says a text; where nobody reads it any more, the session ends. The reader's thread must not end by it."""
        try:
            (say or self._say)(text)
        except OSError:
            self._happened.put(("unread", {}))

    def close(self) -> None:
        self.client.close(terminate=not self.attached)


def _take(point: Message, told: Message) -> None:
    """What the engines now say of a breakpoint."""
    for name in ("message", "reason", "at"):
        point.pop(name, None)
    point.update({name: told[name] for name in ("id", "verified", "message", "reason") if name in told})
    if told.get("line") not in (None, point["line"]):
        point["at"] = told["line"]  # the line asked for has no code


def told_by(error: Exception) -> str:
    """An error in one line."""
    text = str(error.response.get("message") or "failed") if isinstance(error, RequestFailed) else str(error)
    lines = text.strip().splitlines() or [type(error).__name__]
    return lines[-1] if lines[0].startswith("Traceback") else lines[0]
