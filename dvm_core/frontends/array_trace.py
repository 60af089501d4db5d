"""Graph mode of functions over dvm.tensor arrays: one call of a kind is traced, later ones are replayed in the core (native/replay.h).

A replay holds for arrays of the same dtype, shape and strides, the same plain values among the arguments, and as long as what the code
reads from globals, closures and attributes is what it was (see guards). What cannot be replayed runs in stream mode, with a notice that
says why. While a debugger is attached or hot reload has something to do, every call runs in stream mode: the results are the same bits.
"""
from __future__ import annotations

import functools
from typing import Any

from .. import _core
from ..errors import native
from . import guards, observed, reloadable
from .array import Array
from .draws import Draws
from .notices import notice

_PLAIN = (bool, int, float, str, type(None))


class Trace:
    """A call being traced. `arguments`: what the function is called with: arrays of its own, which no global or closure can be."""

    def __init__(self, info: Any, args: tuple, read: list[guards.Guard]) -> None:
        self.info, self.args, self.read = info, args, read
        self.draws = Draws(read)
        with native(_core.user_place()):  # computes what is pending, and another thread may have given it away
            aliases = {id(a): _core.array_alias(a) for a in args if isinstance(a, Array)}
        self.arguments = tuple(aliases.get(id(a), a) for a in args)

    def end(self, active: Any, result: Any) -> Any:
        """Takes what was recorded, before it is flushed, and returns the function's result."""
        own = {id(mine): given for mine, given in zip(self.arguments, self.args, strict=True) if isinstance(mine, Array)}
        handed = any(id(item) in own for item in (result if isinstance(result, tuple) else (result,)))
        why, found = "", None
        if active.flushes or active.reads:
            why = "it reads a value while it runs"
        elif why := self.draws.why():
            pass
        elif isinstance(result, Array) or (type(result) is tuple and result and all(isinstance(item, Array) for item in result)):
            results = (result,) if isinstance(result, Array) else result
            found = None if handed or len(self.arguments) > _core.REPLAYED_ARGUMENTS else _core.recorded(self.arguments, results)
            if len(self.arguments) > _core.REPLAYED_ARGUMENTS:
                why = f"it takes {len(self.arguments)} arguments, and a replay at most {_core.REPLAYED_ARGUMENTS}"
            elif found is None:
                why = "it returns something it did not compute"
            elif len(active._array_recorder.wanted()) != len({id(item) for item in results}):
                why = "it keeps an array beyond the call"
        else:
            why = "it returns something else than arrays"
        if why:
            observed.of(self.info.name).untraceable = why
            path, line = self.info.place
            notice(f"{self.info.name} runs in stream mode: {why}", path=path, line=line, category="trace",
                   once=("trace", self.info.name, why))
        else:
            code = [guard.state() for guard in self.read if isinstance(guard, guards.Code)]
            read = [guard for guard in self.read if not isinstance(guard, guards.Code)]
            holds = functools.partial(_holds, read) if read else None
            observed.of(self.info.name).traces += 1
            self.info.replays.add(self.args, found, isinstance(result, Array), holds, code)
        if handed:
            result = tuple(own.get(id(item), item) for item in result) if isinstance(result, tuple) else own[id(result)]
        return result


def _holds(read: list[guards.Guard]) -> bool:
    return guards.missed(read) is None


def begin(info: Any, args: tuple, kwargs: dict) -> Trace | None:
    """The trace of a call about to be made; None if calls like this are not replayed."""
    if info.replayed_version != reloadable.version:
        info.replayed_version = reloadable.version
        info.replays.clear()
    if kwargs or not all(isinstance(a, Array) or type(a) in _PLAIN for a in args):
        return None
    return Trace(info, args, guards.of_call(info.function, args, kwargs))
