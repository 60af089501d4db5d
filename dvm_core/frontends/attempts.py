"""Calls of a front end that does not begin them by `reloadable.call`: what is swapped is swapped before them, and they are its trial.

Beside captured functions they end trials of their own code only."""
from __future__ import annotations

import contextlib
import os
import threading
import traceback
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from .. import _core
from . import capture, reloadable
from .signatures import without_sizes

T = TypeVar("T")

_SWAPPED = object()  # among what has passed in an attempt: a swap was made in it
_MOST = 256  # kinds of calls that are remembered
_UNKNOWN = 2  # calls of kinds that were not seen before, after which what is queued is swapped all the same

_attempts: dict[int, set[Any]] = {}  # of the threads that make such a call: what has passed in it while something waited
_results: dict[Hashable, Hashable] = {}  # of calls since something was queued, by what was called with what,
_looked = 0  # and how many calls that were
_round = 0  # of what is queued

os.register_at_fork(after_in_child=_attempts.clear)


def calling() -> bool:
    """Whether a call is made that an edit should not come into."""
    return bool(_attempts) or bool(capture.captures())


def attempt(run: Callable[[], T], shows: Callable[[str], bool], kind: Callable[[], Hashable], results: Callable[[T], Hashable]) -> T:
    """Makes a call of a front end that does not begin it here. What is queued is swapped before it, once another of its kind has shown what
    its results are like; it is the trial then: if it fails, or its results are otherwise, the new code is taken back and the call is made
    again. shows(path): whether code of that file is in calls of the front end; a trial that a captured function can show and they cannot
    goes on. kind(): its name, what else it differs by, and the signatures of its arguments; results(result): that of what it gives."""
    thread = threading.get_ident()
    if thread in _attempts:
        return run()
    _attempts[thread] = set()
    try:
        due: frozenset[str] = frozenset()
        its: Hashable | None = None
        if reloadable.waiting():
            its = _described(kind)
            if _is_ready(its):
                _swap()
            due = _due(shows)
        try:
            result = run()
            if reloadable.waiting():
                _look(its or _described(kind), _described(lambda: results(result)), bool(due))
        except BaseException as error:
            if not reloadable.waiting() or not due and _SWAPPED not in _attempts[thread]:  # else it is another thread's
                raise
            over = _due(shows)
            made_again = bool(due & over) and isinstance(error, Exception)
            if not made_again:
                with contextlib.suppress(AttributeError):
                    error.dvm_ended = True  # type: ignore[attr-defined]
            reloadable.take_back(over, error)  # also what was swapped meanwhile: its answer may be the last
            if not made_again:
                raise
            traceback.clear_frames(error.__traceback__)  # whoever keeps the error must not keep the failed call's tensors
        else:
            if reloadable.waiting():
                reloadable.end(due)
            return result
        return run()
    finally:
        _attempts.pop(thread, None)


def _described(describe: Callable[[], Hashable]) -> Hashable | None:
    """None where something of the program's own, such as a `__len__`, cannot be asked: the call is made all the same."""
    try:
        found = describe()
        hash(found)
    except Exception:
        return None
    return found


def _is_ready(kind: Hashable | None) -> bool:
    """Whether what is queued is to be swapped before a call of that kind: it is known, others have shown nothing, or ranks wait for it."""
    _renew()
    number = reloadable.first_number()
    return number is not None and (_known(kind) is not None or _looked >= _UNKNOWN or number > 0)


def _look(kind: Hashable | None, results: Hashable | None, tried: bool) -> None:
    """Compares the results of a trial with those of a call before it, of its kind and with arguments of the same shapes, or at least of as
    many axes."""
    global _looked
    _renew()
    _looked += 1
    if kind is None or results is None:
        return
    known = _known(kind) if tried else None
    if known is not None and known != results and (kind in _results or without_sizes(known) != without_sizes(results)):
        raise reloadable.changed(kind, known, results, kind in _results)
    if len(_results) > _MOST:
        _results.clear()
    _results[kind] = _results[without_sizes(kind)] = results


def _renew() -> None:
    """Where something is queued, and nothing was meanwhile, what calls give is looked at anew."""
    global _looked, _round
    if _round != reloadable.rounds():
        _looked, _round = 0, reloadable.rounds()
        _results.clear()


def _known(kind: Hashable | None) -> Hashable | None:
    return _results.get(kind, _results.get(without_sizes(kind)))


def passed(shows: Callable[[str], bool], part: Any) -> None:
    """A call by `attempt` has ended, or a part of it: of one that is a loop, in which the same part ends twice, a round has."""
    parts = _attempts.get(threading.get_ident())
    if parts is None or part in parts:
        reloadable.end(_due(shows))
        if reloadable.first_number() is not None:
            _swap()
            if parts is not None:
                parts.add(_SWAPPED)
    else:
        parts.add(part)


def _due(shows: Callable[[str], bool]) -> frozenset[str]:
    return frozenset(path for path in reloadable.awaited() if _shown(path, shows))


def _swap() -> None:
    """On the thread that makes the calls: which of them is next is not known."""
    reloadable.swap(_core.step() + 1, recorded=False)


def _shown(path: str, shows: Callable[[str], bool]) -> bool:
    """Whether a call of a front end that shows these files ends the trial of one: no captured function can tell more about it."""
    if not path or not (reloadable.functions() or reloadable.calls()):
        return True
    return shows(path) and not reloadable.has_captured(path)
