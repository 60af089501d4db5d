"""Steps of Python's out of a function that PyTorch has compiled in parts: between two parts its lines are Python's, and the next part is a
call to Python's debugger, which a step goes over. So a step stops at the first instruction of that function instead, if one comes."""
from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

from .. import _core
from .commands import Answer, Arguments, command, need
from .hooks import clear_hook
from .line_map import line_map
from .places import function_around, place, real, user_frame

if TYPE_CHECKING:
    from .session import Session


class Following:
    """The function that the last step of Python's began in, until the next stop of any kind."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._hook = session.new_hook()
        self.lock = threading.Lock()  # programs are made on capturing threads
        self._thread = 0
        self._body: tuple[str, int, int] | None = None  # real path, first and last line
        self._set: list[tuple[int, int]] = []  # (program, instruction) with a STOP of ours

    def begin(self, ident: int) -> None:
        """Before Python steps on that thread, which stands."""
        self.end()
        compiled = self._session.breakpoints.graph_mode
        frame = user_frame(sys._current_frames().get(ident)) if compiled else None
        body = self._body_at(frame.f_code.co_filename, frame.f_lineno) if frame is not None else None
        with self.lock:
            self._thread, self._body = ident, body
            if body is not None:
                for program in _core.programs():
                    if program.id in compiled:
                        self._place(program)

    def end(self) -> None:
        with self.lock:
            self._body = None
            for program, instruction in self._set:
                clear_hook(program, instruction, _core.HOOK_STOP, self._hook)
            self._set.clear()

    def new_program(self, program: Any, graph_mode: bool) -> None:
        """On the capturing thread: the next part may be compiled only now."""
        with self.lock:
            if graph_mode and self._body is not None:
                self._place(program)

    def hit(self, hooks: tuple[int, ...]) -> bool:
        """Whether the step ends here, on the launching thread."""
        return self._hook in hooks and self._body is not None and threading.get_ident() == self._thread

    def _body_at(self, path: str, line: int) -> tuple[str, int, int] | None:
        inner = function_around(self._session.texts.text(path), line)
        return None if inner is None else (real(path), inner.lineno, inner.end_lineno or inner.lineno)

    def _place(self, program: Any) -> None:
        assert self._body is not None
        places = program.places
        first = next((index for index in line_map(program).instructions(*self._body) if not place(places[index]).backward), None)
        if first is not None:
            self._set.append((program.id, first))
            _core.set_hook(program.id, first, _core.HOOK_STOP, self._hook)


@command("follow")
def follow(session: Session, arguments: Arguments) -> Answer:
    """thread: ident of the one on which Python is about to step."""
    session.following.begin(need(arguments, "thread", int))
    return {}
