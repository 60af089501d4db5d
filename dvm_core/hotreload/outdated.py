"""Code that a reload has replaced and that still runs: a call on the stack ends with what it began with, in the lines of an older text."""
from __future__ import annotations

import weakref
from types import CodeType, FrameType

from .apply import Patch
from .live import Live
from .parse import all_codes
from .sources import SourceBook


class Outdated:
    """Remembers for as long as replaced code lives which text it was compiled from."""

    def __init__(self, book: SourceBook, texts: weakref.WeakKeyDictionary[CodeType, str]) -> None:
        self._book, self._texts = book, texts

    def swapped(self, patch: Patch, text: str) -> None:
        """Code that this patch has replaced was compiled from `text`."""
        for assignment in patch.assignments[:patch.applied]:
            if isinstance(assignment.old, CodeType):
                for code in all_codes(assignment.old):
                    self._texts.setdefault(code, text)

    def text_of(self, frame: FrameType) -> str | None:
        """The older text that the frame's lines are numbered in, None where it is the one in force, or not known."""
        code = frame.f_code
        path = code.co_filename
        in_force = self._book.get(path)
        text = self._book.first(path) if code.co_name == "<module>" else self._texts.get(code)
        if text is None or text == in_force:
            return None
        if code.co_name != "<module>" and any(code in all_codes(function.__code__) for function in Live(path).functions):
            return None  # taken back meanwhile
        return text

    def on(self, frame: FrameType | None) -> list[tuple[FrameType, str]]:
        """The frames from this one outward that run older texts, and these."""
        found = []
        while frame is not None:
            text = self.text_of(frame) if self._book.get(frame.f_code.co_filename) is not None else None
            if text is not None:
                found.append((frame, text))
            frame = frame.f_back
        return found
