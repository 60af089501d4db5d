"""Program output on its way to the editor: joined while it pours, cut when it floods."""
from __future__ import annotations

import asyncio
import re
import time
from typing import Any

from .channel import BACKLOG_LIMIT, Channel

JOIN_FOR = 0.02  # seconds text of one stream is collected before it is sent
BYTES_PER_SECOND = 1 << 20  # what a debug console can take and a person cannot read anyway
LARGEST = 64 << 10  # characters in one event
# Escape sequences of terminals: colours and the like, links and titles, a single letter; and one that has begun at the end of a text.
_STYLING = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-Z\\^-~])")
_BEGUN = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]{0,2000}\x1b?|[ -/]*)\Z")


class Output:
    """Passes `output` events on. Order is kept: `flush` before anything that must not overtake text (a stop, the end)."""

    def __init__(self, client: Channel) -> None:
        self._client = client
        self._category = ""
        self._parts: list[str] = []
        self._size = 0
        self._timer: asyncio.TimerHandle | None = None
        self._window = 0.0
        self._sent = 0
        self._cut_lines = 0
        self._cut_bytes = 0
        self.over = False  # the client has been told that the program is
        self.plain = False  # the client does not know the escape sequences of terminals
        self._begun: dict[Any, str] = {}  # category -> a sequence whose end has not come yet

    def event(self, body: dict[str, Any]) -> None:
        """An output event as debugpy sent it. Plain text may be joined with its neighbours; anything with a source or children is not."""
        if self.over:
            return
        text = body.get("output")
        if self.plain and isinstance(text, str):
            text = self._without_styling(body.get("category"), text)
            body = {**body, "output": text}
        if set(body) - {"category", "output", "source"} or body.get("source") or not isinstance(text, str):
            self.flush()
            self._client.event("output", body)
            return
        category = body.get("category", "console")
        if category != self._category:
            self.flush()
            self._category = category
        if not self._admit(text):
            return
        self._parts.append(text)
        self._size += len(text)
        if self._size >= LARGEST:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(JOIN_FOR, self.flush)

    def _without_styling(self, category: Any, text: str) -> str:
        text = _STYLING.sub("", self._begun.pop(category, "") + text)
        if begun := _BEGUN.search(text):
            self._begun[category] = begun[0]
            text = text[:begun.start()]
        return text

    def _admit(self, text: str) -> bool:
        now = time.monotonic()
        if now - self._window >= 1:
            self._report_cut()
            self._window, self._sent = now, 0
        if self._sent + len(text) > BYTES_PER_SECOND or self._client.backlog() > BACKLOG_LIMIT:
            self._cut_lines += text.count("\n") or 1
            self._cut_bytes += len(text)
            # The report must come even if the program never prints again.
            asyncio.get_running_loop().call_later(1.1, self._report_cut) if self._cut_bytes == len(text) else None
            return False
        self._sent += len(text)
        return True

    def _report_cut(self) -> None:
        if self._cut_bytes and not self.over:
            lines, size = self._cut_lines, self._cut_bytes
            self._cut_lines = self._cut_bytes = 0
            self.flush()
            self._client.event("output", {"category": "important", "output":
                               f"[{lines:,} lines ({size / 1e6:.1f} MB) of output left out: the program prints faster than "
                               f"{BYTES_PER_SECOND >> 20} MiB/s]\n"})

    def flush(self) -> None:
        """Sends what has been collected."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._parts:
            text = "".join(self._parts)
            self._parts.clear()
            self._size = 0
            self._client.event("output", {"category": self._category, "output": text})

    def finish(self) -> None:
        """The end of the program's output: everything, and what was left out."""
        self.flush()
        self._report_cut()

    def say(self, text: str, category: str = "console", **where: Any) -> None:
        """A line of the adapter's own."""
        self.flush()
        if not self.over:
            self._client.event("output", {"category": category, "output": text.rstrip("\n") + "\n", **where})
