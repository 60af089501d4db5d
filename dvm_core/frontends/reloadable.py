"""The boundary between two captured calls: where new code is put in force, tried, and taken back if it does not work.

Hot reload prepares everything elsewhere and queues the swap with `at_next_call`. The swap runs on the training thread at the start of
the next outermost captured call. With `trial` that call decides: if recording raises, or the results no longer have the shapes and
dtypes that the last good call with the same inputs had, the swap is undone and the call is made again with the old code
(Ctrl-C is no fault of the code: the swap is undone, the call is not made again). For each other captured function its first call behind
the swap is a late trial: if that fails with the new code in it, the swap is undone and the call is made again as well. A front end
whose calls begin elsewhere makes them by `attempt`, and tells that a part of one has ended by `passed`; beside captured functions it ends
trials of its own code only.
"""
from __future__ import annotations

import collections
import contextlib
import os
import threading
import traceback
import types
import weakref
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from .. import _core
from ..errors import Error
from . import capture
from .notices import notice
from .signatures import without_sizes, words

T = TypeVar("T")
Check = Callable[[Hashable], None]
Undone = Callable[[bool], None]  # told whether the call has passed without the edit: if not, it is put in force again
Late = Callable[[BaseException], "Undone | None"]


class Trial(NamedTuple):
    """Of what was swapped."""
    undo: Callable[[BaseException], None]
    path: str  # of the file that was edited, "" if any call can show it
    agree: Callable[[], None]  # to the recorded call
    late: Late | None  # who hears of late trials


@dataclass(eq=False)
class Queued:
    """What is to be swapped."""
    apply: Callable[[int], None]
    number: int  # of the call before which it is not due,
    of: str  # counted in those of this captured function, in all if it is none


_LATE = 64  # swaps that have one ahead
_UNKNOWN = 2  # calls by `attempt` of kinds that were not seen before, after which what is queued is swapped all the same
_SIGNATURES = 4096  # remembered (function, inputs) -> outputs pairs; the oldest are forgotten

_lock = threading.RLock()
_queue: list[Queued] = []
_trials: list[Trial] = []
_late: dict[str, list[Late]] = {}  # by captured function that was not called since: who hears of it, in the order of their swaps
_late_lock = threading.RLock()
_on_success: list[tuple[Callable[[int], None], str]] = []
_signatures: collections.OrderedDict[Hashable, Hashable] = collections.OrderedDict()
_results: dict[Hashable, Hashable] = {}  # of calls by `attempt` since something was queued, by what was called with what,
_looked = 0  # and how many calls that were
_functions: weakref.WeakSet[Any] = weakref.WeakSet()
_here = threading.local()
_attempts: dict[int, set[Any]] = {}  # of the threads that make such a call: what has passed in it while something waited
version = 0  # goes up whenever queued code was put in force or taken back; traces of graph mode depend on it


def _in_child() -> None:
    """After a fork: the threads that made calls or held a lock are the parent's, and so is what waits for a call."""
    global _lock, _late_lock
    _lock, _late_lock = threading.RLock(), threading.RLock()
    for waiting_for in (_queue, _trials, _on_success, _attempts):
        waiting_for.clear()
    _hold()


os.register_at_fork(after_in_child=_in_child)


class OutputsChanged(Error):
    """New code gives other shapes, dtypes or another structure than the code it replaces."""

    codes: Sequence[types.CodeType] = ()  # of the captured functions whose results they are


def register(function: Any) -> None:
    """Remembers a captured function (jit.CapturedFunction)."""
    _functions.add(function)


def functions() -> list[Any]:
    """All captured functions alive (jit.CapturedFunction)."""
    return list(_functions)


def step() -> int:
    """Number of the current or last outermost captured call; 0 before the first."""
    return _core.step()


def calls() -> dict[str, int]:
    """Outermost captured calls so far, of each captured function that was called."""
    return _core.calls()


def call_number(step: int) -> int:
    """Which call of its captured function a step was; 0 if it was none, or is long ago."""
    found = _core.call_of_step(step)
    return found[1] if found is not None else 0


def at_next_call(apply: Callable[[int], None], number: int = 0, of: str = "") -> Callable[[], None]:
    """Queues `apply(step)`: it runs on the training thread at the next outermost captured call, before that records anything. number: of
    the first call that it is for; of: not of all calls, but of those of that captured function. Gives what takes it from the queue."""
    global _looked
    entry = Queued(apply, number, of)
    with _lock:
        if not waiting():
            _results.clear()
            _looked = 0
        _queue.append(entry)
        _hold()

    def cancel() -> None:
        with _lock:
            if entry in _queue:
                _queue.remove(entry)
                _hold()

    return cancel


def held() -> contextlib.AbstractContextManager[Any]:
    """While it is entered, no captured call begins."""
    return _lock


def agrees_when_recorded() -> bool:
    """For `apply`: whether what is recorded of the call about to begin can be agreed to before it is executed."""
    return not getattr(_here, "passing", False)


def trial(undo: Callable[[BaseException], None], path: str = "", agree: Callable[[], None] = lambda: None,
          late: Late | None = None) -> None:
    """Makes the next outermost captured call a trial; `undo(error)` runs if it fails, and the call is made again. From `apply` it means
    the call about to begin. path: the file whose code is tried; agree(): called when the call was recorded, may raise as the call may.
    late(error): another captured function has failed in its first call since. None if what was swapped has no part in it; else it is
    undone."""
    with _lock:
        _trials.append(Trial(undo, path, agree, late))
        _hold()


def on_success(callback: Callable[[int], None], path: str = "") -> None:
    """`callback(step)` runs once: after the trial that is due for the file has passed."""
    with _lock:
        _on_success.append((callback, path))
        _hold()


def _hold() -> None:
    # A replayed call would neither swap nor be a trial. Under the lock.
    _core.hold_replays(waiting())


def call(name: str, inputs: Hashable, run: Callable[[int, Check | None], T]) -> T:
    """Makes one outermost captured call: `run(step, check)` records and runs the function; it must pass the signature of its results
    to `check` before it executes anything. inputs: signature of the arguments."""
    global version
    with _lock:
        number = _core.begin_call(name)
        due = _queued(number, name)
    for apply in due:
        _guarded(apply, number)
    if due:
        version += 1
    with _lock:
        trials, successes = list(_trials), [callback for callback, _ in _on_success]
        _trials.clear()
        _on_success.clear()
        _hold()
    key = (name, inputs)
    tried = bool(trials)
    if tried:
        def check(outputs: Hashable) -> None:
            _compare(key, outputs)
            for trial in trials:
                trial.agree()

        try:
            result = run(number, check)
        except BaseException as error:  # any failure of the new code takes it back
            for trial in reversed(trials):
                _guarded(trial.undo, error)
            version += 1
            if not isinstance(error, Exception):  # Ctrl-C: nobody waits for this call any more
                raise
            traceback.clear_frames(error.__traceback__)  # whoever keeps the error must not keep the failed call's tensors
            tried, successes = False, []
    if not tried:
        result = _untried(name, number, key, run)
    if tried or name in _late:
        _passed(name, [trial.late for trial in trials if trial.late is not None] if tried else [])
    for callback in successes:
        _guarded(callback, number)
    return result


def _passed(name: str, lates: list[Late]) -> None:
    """A call has passed, and with it the trial of what `lates` hear of."""
    with _late_lock:
        _late.pop(name, None)
        if lates:
            for other in {*calls(), *(captured.key for captured in functions())} - {name}:
                _late[other] = [*_late.get(other, ()), *lates][-_LATE:]


def _untried(name: str, number: int, key: tuple[str, Hashable], run: Callable[[int, Check | None], T]) -> T:
    """A call that is no trial, or a late one."""
    lates = list(_late.get(name, ()))
    if not lates:
        return run(number, lambda outputs: _remember(key, outputs))
    try:
        return run(number, lambda outputs: _check_late(key, outputs))
    except Exception as error:
        return _without(lates, error, number, key, run)


def _without(lates: list[Late], error: Exception, number: int, key: tuple[str, Hashable], run: Callable[[int, Check | None], T]) -> T:
    """Makes a late trial that has failed again, without one edit after the other that has a part in the error, the last first. An edit
    without which it fails alike is put in force again; if none is left, the error is the program's own."""
    global version
    for late in reversed(lates):
        undone = _blamed(late, error)
        if undone is None:
            continue
        version += 1
        try:
            result = run(number, lambda outputs: _check_late(key, outputs))
        except Exception as again:
            alike = type(again) is type(error) and (str(again) == str(error) or isinstance(again, OutputsChanged))
            _guarded(undone, not alike)
            version += alike
            error = error if alike else again
        else:
            _guarded(undone, True)
            traceback.clear_frames(error.__traceback__)
            return result
    if isinstance(error, OutputsChanged):  # so it does without the edits
        return run(number, lambda outputs: _remember(key, outputs))
    raise error


def _check_late(key: tuple[str, Hashable], outputs: Hashable) -> None:
    try:
        _compare(key, outputs)
    except OutputsChanged as error:
        error.codes = [captured.function.__code__ for captured in functions() if captured.key == key[0]]
        raise


def _blamed(late: Late, error: Exception) -> Undone | None:
    with _late_lock:  # of two threads that fail at once the second finds it undone
        try:
            return late(error)
        except Exception as fault:
            _tell_fault(fault)
            return None


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
        its = _described(kind) if waiting() else None
        if waiting():
            if _is_ready(its):
                _swap()
            due = _due(shows)
        try:
            result = run()
            if waiting():
                _look(its or _described(kind), _described(lambda: results(result)), bool(due))
        except BaseException as error:
            if not waiting():
                raise
            over = _due(shows)
            _take_back(over, error)  # also what was swapped meanwhile: its answer may be the last
            if not due & over or not isinstance(error, Exception):
                raise
            traceback.clear_frames(error.__traceback__)  # as above
        else:
            if waiting():
                _end(due)
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
    with _lock:
        return bool(_queue) and (_known(kind) is not None or _looked >= _UNKNOWN or any(entry.number for entry in _queue))


def _look(kind: Hashable | None, results: Hashable | None, tried: bool) -> None:
    """Compares the results of a trial with those of a call before it, of its kind and with arguments of the same shapes, or at least of as
    many axes."""
    global _looked
    _looked += 1
    if kind is None or results is None:
        return
    known = _known(kind) if tried else None
    if known is not None and known != results and (kind in _results or without_sizes(known) != without_sizes(results)):
        raise _changed(kind, known, results)
    _results[kind] = _results[without_sizes(kind)] = results


def _known(kind: Hashable | None) -> Hashable | None:
    return _results.get(kind, _results.get(without_sizes(kind)))


def passed(shows: Callable[[str], bool], part: Any) -> None:
    """A call by `attempt` has ended, or a part of it: of one that is a loop, in which the same part ends twice, a round has."""
    parts = _attempts.get(threading.get_ident())
    if parts is None or part in parts:
        _end(_due(shows))
        _swap()
    else:
        parts.add(part)


def calling() -> bool:
    """Whether a call is made that an edit should not come into."""
    return bool(_attempts) or bool(capture.captures())


def _due(shows: Callable[[str], bool]) -> frozenset[str]:
    with _lock:
        return frozenset(path for path in [trial.path for trial in _trials] + [path for _, path in _on_success] if _shown(path, shows))


def _end(over: frozenset[str]) -> None:
    """The trials of these files have passed."""
    number = _core.step()
    with _lock:
        successes = [callback for callback, path in _on_success if path in over]
        _forget(over)
        _hold()
    for callback in successes:
        _guarded(callback, number)


def _swap() -> None:
    """Swaps what is queued, on the thread that makes the calls: which of them is next is not known."""
    global version
    number = _core.step() + 1
    with _lock:
        due = _queued(number)
    _here.passing = True
    try:
        for apply in due:
            _guarded(apply, number)
    finally:
        _here.passing = False
    version += bool(due)
    with _lock:
        _hold()


def _take_back(over: frozenset[str], error: BaseException) -> None:
    global version
    with _lock:
        undos = [trial.undo for trial in _trials if trial.path in over]
        _forget(over)
        _hold()
    for undo in reversed(undos):
        _guarded(undo, error)
    version += bool(undos)


def _forget(over: frozenset[str]) -> None:
    _on_success[:] = [entry for entry in _on_success if entry[1] not in over]
    _trials[:] = [trial for trial in _trials if trial.path not in over]


def _queued(step: int, name: str = "") -> list[Callable[[int], None]]:
    """Takes from the queue what that step, a call of the captured function of that name, is to begin with. Under the lock."""
    call = call_number(step)
    due = [entry for entry in _queue if entry.of in ("", name) and entry.number <= (call if entry.of else step)]
    _queue[:] = [entry for entry in _queue if entry not in due]
    return [entry.apply for entry in due]


def waiting() -> bool:
    """Whether the end of a call has something to do with a reload."""
    return bool(_queue or _trials or _on_success)


def _shown(path: str, shows: Callable[[str], bool]) -> bool:
    # Whether a call of a front end that shows these files ends the trial of one: no captured function can tell more about it.
    if not path or not (_functions or calls()):
        return True
    real = os.path.realpath(path)
    codes = [getattr(getattr(captured, "function", None), "__code__", None) for captured in _functions]
    return shows(path) and not any(code is not None and os.path.realpath(code.co_filename) == real for code in codes)


def _guarded(function: Callable[[Any], None], argument: Any) -> None:
    # Hot reload's own failure must not end the user's training.
    try:
        function(argument)
    except Exception as error:
        _tell_fault(error)


def _tell_fault(error: Exception) -> None:
    notice(f"hot reload failed inside the debugger: {type(error).__name__}: {error}", category="reload")


def _remember(key: Hashable, outputs: Hashable) -> None:
    _signatures[key] = outputs
    if len(_signatures) > _SIGNATURES:
        _signatures.popitem(last=False)


def _compare(key: tuple[str, Hashable], outputs: Hashable) -> None:
    known = _signatures.get(key, outputs)
    if known != outputs:
        raise _changed(key, known, outputs)
    _remember(key, outputs)


def _changed(key: Any, known: Hashable, outputs: Hashable) -> OutputsChanged:
    return OutputsChanged(f"{key[0].rpartition(':')[2]} would return {words(outputs)} instead of {words(known)} for the same inputs")
