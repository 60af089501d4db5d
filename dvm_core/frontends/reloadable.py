"""The boundary between two captured calls: where new code is put in force, tried, and taken back if it does not work.

Hot reload prepares everything elsewhere and queues the swap with `at_next_call`. The swap runs on the training thread at the start of
the next outermost captured call. With `trial` that call decides: if recording raises, or the results no longer have the shapes and
dtypes that the last good call with the same inputs had, the swap is undone and the call is made again with the old code
(Ctrl-C is no fault of the code: the swap is undone, the call is not made again). For each other captured function its first call behind
the swap is a late trial: if that fails with the new code in it, the swap is undone and the call is made again as well. Calls of a front
end that begin elsewhere are in `attempts`.
"""
from __future__ import annotations

import collections
import contextlib
import os
import threading
import traceback
import types
import weakref
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from .. import _core
from ..errors import Error
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
_SIGNATURES = 4096  # remembered (function, inputs) -> outputs pairs; the oldest are forgotten

_lock = threading.RLock()
_queue: list[Queued] = []
_trials: list[Trial] = []
_late: dict[str, list[Late]] = {}  # by captured function that was not called since: who hears of it, in the order of their swaps
_late_lock = threading.RLock()
_on_success: list[tuple[Callable[[int], None], str]] = []
_signatures: collections.OrderedDict[Any, Hashable] = collections.OrderedDict()
_functions: weakref.WeakSet[Any] = weakref.WeakSet()
_front_ends: list[Callable[[str], bool]] = []
_here = threading.local()
_rounds = 0
version = 0  # goes up whenever queued code was put in force or taken back; traces of graph mode depend on it


def _in_child() -> None:
    """After a fork: the threads that made calls or held a lock are the parent's, and so is what waits for a call."""
    global _lock, _late_lock
    _lock, _late_lock = threading.RLock(), threading.RLock()
    for waiting_for in (_queue, _trials, _on_success):
        waiting_for.clear()
    _hold()


os.register_at_fork(after_in_child=_in_child)


class OutputsChanged(Error):
    """New code gives other shapes, dtypes or another structure than the code it replaces."""

    codes: Sequence[types.CodeType] = ()  # of the captured functions whose results they are


def register(function: Any) -> None:
    """Remembers a captured function (jit.CapturedFunction)."""
    _functions.add(function)


def register_front_end(shows: Callable[[str], bool]) -> None:
    """Remembers one whose calls begin elsewhere (attempts). shows(path): whether code of that file is in its calls."""
    _front_ends.append(shows)


def has_captured(path: str) -> bool:
    """Whether a captured function is defined in that file."""
    real = os.path.realpath(path)
    codes = [getattr(getattr(captured, "function", None), "__code__", None) for captured in functions()]
    return any(code is not None and os.path.realpath(code.co_filename) == real for code in codes)


def _elsewhere(path: str) -> bool:
    """Whether calls of another front end can tell more about what was swapped of that file than those of captured functions."""
    return bool(path) and any(shows(path) for shows in _front_ends) and not has_captured(path)


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
    global _rounds
    entry = Queued(apply, number, of)
    with _lock:
        _rounds += not waiting()
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
    number = _core.begin_call(name)
    trials, successes = _begin(number, name) if waiting() else ([], [])  # what is queued from here on is the next call's
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
                guarded(trial.undo, error)
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
        guarded(callback, number)
    return result


def _begin(number: int, name: str) -> tuple[list[Trial], list[Callable[[int], None]]]:
    """Swaps what that call is to begin with. Gives what it tries, and who hears that it has passed."""
    swap(number, name)
    with _lock:
        return _take({path for path in awaited() if not _elsewhere(path)})


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
            guarded(undone, not alike)
            version += alike
            error = error if alike else again
        else:
            guarded(undone, True)
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


def swap(step: int, name: str = "", recorded: bool = True) -> None:
    """Runs what that step, a call of the captured function of that name, is to begin with. recorded: whether it is recorded whole before
    anything of it is executed."""
    global version
    with _lock:
        due = _queued(step, name)
    _here.recorded = recorded
    for apply in due:
        guarded(apply, step)
    version += bool(due)


def agrees_when_recorded() -> bool:
    """For `apply`: whether what is recorded of the call about to begin can be agreed to before it is executed."""
    return getattr(_here, "recorded", True)


def rounds() -> int:
    """How often something was queued where nothing was."""
    return _rounds


def first_number() -> int | None:
    """Of the calls that what is queued waits for: 0 for any; None if nothing is queued."""
    with _lock:
        return max((entry.number for entry in _queue), default=None)


def awaited() -> list[str]:
    """The files, "" for any, whose trials are to be ended by a call."""
    with _lock:
        return [trial.path for trial in _trials] + [path for _, path in _on_success]


def end(over: Collection[str]) -> None:
    """The trials of these files have passed."""
    number = _core.step()
    with _lock:
        _, successes = _take(over)
    for callback in successes:
        guarded(callback, number)


def take_back(over: Collection[str], error: BaseException) -> None:
    """The trials of these files have failed."""
    global version
    with _lock:
        trials, _ = _take(over)
    for trial in reversed(trials):
        guarded(trial.undo, error)
    version += bool(trials)


def _take(over: Collection[str]) -> tuple[list[Trial], list[Callable[[int], None]]]:
    """The trials of these files, and who hears that they have passed; nothing waits for them any more. Under the lock."""
    trials, successes = [trial for trial in _trials if trial.path in over], [callback for callback, path in _on_success if path in over]
    _on_success[:] = [entry for entry in _on_success if entry[1] not in over]
    _trials[:] = [trial for trial in _trials if trial.path not in over]
    _hold()
    return trials, successes


def _queued(step: int, name: str) -> list[Callable[[int], None]]:
    """Takes from the queue what that step, a call of the captured function of that name, is to begin with. Under the lock."""
    call = call_number(step)
    due = [entry for entry in _queue if entry.of in ("", name) and entry.number <= (call if entry.of else step)]
    _queue[:] = [entry for entry in _queue if entry not in due]
    return [entry.apply for entry in due]


def waiting() -> bool:
    """Whether the end of a call has something to do with a reload."""
    return bool(_queue or _trials or _on_success)


def guarded(function: Callable[[Any], None], argument: Any) -> None:
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
    known = _signatures.get(key)
    if known is None:
        known = _alike(key)
        differs = known is not None and without_sizes(known) != without_sizes(outputs)
    else:
        differs = known != outputs
    if differs:
        raise changed(key, known, outputs, key in _signatures)
    _remember(key, outputs)


def _alike(key: Any) -> Hashable | None:
    """The results of the last call of that function whose arguments differ in sizes and numbers alone."""
    name, wanted = key[0], without_sizes(key)
    alike = (results for other, results in reversed(list(_signatures.items())) if other[0] == name and without_sizes(other) == wanted)
    return next(alike, None)


def changed(key: Any, known: Hashable, outputs: Hashable, same: bool) -> OutputsChanged:
    """same: what is known is of the same inputs, and not of others like them."""
    inputs = "the same inputs" if same else "inputs like these"
    return OutputsChanged(f"{key[0].rpartition(':')[2]} would return {words(outputs)} instead of {words(known)} for {inputs}")
