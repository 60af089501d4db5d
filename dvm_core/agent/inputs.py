"""What the user calls the inputs of programs: the variables that named a tensor when an instruction first read it, and parameters.

A program knows no names of its inputs, and when it is launched the function whose arguments they are may have returned. So names are noted
while instructions are recorded, as long as a watch has use for them: recording costs nothing else."""
from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import _core
from ..frontends import capture as captures
from . import naming
from .places import real, user_frame
from .views import call_frames, plain_locals, tensor_variables

if TYPE_CHECKING:
    from .session import Session

_STEPS = 100  # in which names are noted after a watch was set or a program made
_PROGRAMS = 8192  # whose names are kept, the newest
_ANY = frozenset({""})  # file
_numbers = itertools.count(1)

Names = dict[str, frozenset[str]]  # name: the files of the functions that have it, "" for a parameter's own name


class _Noted:
    """Of one captured call: the names of its inputs so far."""

    def __init__(self) -> None:
        self.names: dict[int, Names] = {}  # by value of the graph
        self.parameters: list[tuple[str, Any]] = []  # of models that its functions can name, `net.fc.weight` and `self.fc.weight`
        self.found: dict[int, Names] = {}  # those that are inputs, by value of the graph
        self.models: set[int] = set()  # whose parameters are there; 0: those that the captured function can name


class Inputs:
    """Names by program; noted while somebody wants them."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._names: dict[int, dict[int, Names]] = {}  # by program and number of the input
        self._newest: dict[int, dict[int, Names]] = {}  # the same of its last call
        self._until = -1  # the last step in which they are noted; -1: they are not
        self.lock = threading.Lock()  # for that and the handlers, which go together
        self._closed = False
        self._number = next(_numbers)

    def of(self, program: int) -> dict[int, Names]:
        """By number of the input; those that are known so far."""
        return self._names.get(program, {})

    def anew(self) -> None:
        """After a reload: what was an argument may be another one."""
        self._names.clear()
        self._newest.clear()
        self.want()

    def want(self) -> None:
        """From now on, for some steps."""
        with self.lock:
            if self._closed:
                return
            on, self._until = self._until >= 0, self._session.step() + _STEPS
            if not on:
                captures.names_for = self._number
                captures.on_input = self._read
                _core.set_input_handler(self._told)

    def end(self) -> None:
        """For good: a program that is being made meanwhile wants none any more."""
        with self.lock:
            self._closed = True
            self._pause()

    def _pause(self) -> None:
        """Under the lock."""
        if self._until >= 0:
            self._until = -1
            captures.names_for = 0
            captures.on_input = None
            _core.set_input_handler(None)

    def look(self, wanted: bool, watched: bool = False) -> None:
        """From time to time. wanted: some watch has use for names. watched: some has an input, whose name may be another's one day."""
        with self.lock:
            if not wanted or (not watched and self._session.step() > self._until):
                self._pause()

    def _read(self) -> None:
        """On the capturing thread, where the front end has its inputs itself. Never raises."""
        self._told(None)

    def _told(self, program: Any) -> list[tuple[int, int]] | None:
        """On the capturing thread: None after an instruction that brought inputs, a program before its launch. Gives the hooks, (watch,
        instruction), that this launch passes over. Never raises."""
        try:
            if program is None:
                self._note()
            elif not program.backward:
                return self._launched(program)
        except Exception as error:
            self.end()
            text = f"the inputs of programs are named no longer: {type(error).__name__}: {error}"
            self._session.later("notice", text=text, path="", line=0, category="error")
        return None

    def _note(self) -> None:
        capture, frame = captures.active(), user_frame(sys._getframe(1))
        if capture is None or frame is None:
            return
        if capture.noted is None:
            capture.noted = _Noted()
        noted: _Noted = capture.noted
        for name, value, around in tensor_variables(frame, capture, self._session.texts, around=True):
            if not capture.graph.opcode(value):
                names = noted.names.setdefault(value, {})
                names[name] = names.get(name, frozenset()) | {real(around.f_code.co_filename)}
        if not noted.models:
            *_, outermost = call_frames(frame, capture)
            noted.models.add(0)
            noted.parameters += naming.parameters(plain_locals(outermost))
        own = frame.f_locals.get("self")
        if own is not None and id(own) not in noted.models:
            noted.models.add(id(own))
            noted.parameters += naming.parameters({"self": own})

    def _launched(self, program: Any) -> list[tuple[int, int]] | None:
        """The launching capture's graph is about to run the program."""
        watches, capture = self._session.watches, captures.launching()
        watches.launched(program)
        values = capture.graph.inputs() if capture is not None else ()
        if capture is None or len(values) != program.input_count:
            return None
        names = self._of_call(capture, values)
        if names != self._newest.get(program.id):
            self._newest[program.id] = names
            if self._keep(program, names):
                watches.inputs_named(program)
        return watches.passed_over(program, names) if capture.noted is not None else None

    @staticmethod
    def _of_call(capture: Any, values: Sequence[int]) -> dict[int, Names]:
        noted: _Noted = capture.noted or _Noted()
        parameters = noted.found
        for path, tensor in () if capture.replays else noted.parameters:
            if (value := capture.find(tensor)) is not None:
                own = getattr(tensor, "name", "")
                parameters.setdefault(value, {}).update(dict.fromkeys([path, own] if own and isinstance(own, str) else [path], _ANY))
        found = {}
        for local, value in enumerate(values):
            if not capture.graph.opcode(value):  # else a result of an earlier program of this call
                own = capture.name_of(value)
                found[local] = {**parameters.get(value, {}), **({own: _ANY} if own else {}), **noted.names.get(value, {})}
        return found

    def _keep(self, program: Any, names: dict[int, Names]) -> bool:
        """Whether any of the names is news."""
        kept = self._names.setdefault(program.id, {})
        if len(self._names) > _PROGRAMS:
            gone = next(iter(self._names))
            del self._names[gone]
            self._newest.pop(gone, None)
        news = False
        for local, fresh in names.items():
            known = kept.get(local, {})
            merged = {name: known.get(name, frozenset()) | fresh.get(name, frozenset()) for name in {**known, **fresh}}
            news = news or merged != known
            kept[local] = merged
        return news
