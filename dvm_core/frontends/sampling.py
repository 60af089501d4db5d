"""`dvm run --advise`: some calls of captured functions are timed, and made once more by the framework alone where nobody can tell.

A call is made again only if that leaves no trace: no gradient is wanted, the capture of the last call saw no tensor changed in place, no
random number and no value read in Python, and the code of the function does nothing but call what is known (see repeatable). The result of
the second call is dropped; the program gets the captured one. Which of the two comes first alternates.
"""
from __future__ import annotations

import functools
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from . import capture, observed, repeatable

WARM, EVERY, MOST = 3, 4, 64  # calls before the first sample; from one to the next; samples of a function

on = False  # set before the program's functions are decorated


class _Native(threading.local):
    inside = False  # the framework is making a call: nothing in it is captured


_native = _Native()
_failed: dict[Any, str] = {}  # code -> what came of the framework's own call


def watch(info: Any, call: Callable[..., Any]) -> Callable[..., Any]:
    """A captured function (jit.CapturedFunction) whose calls are sampled."""
    @functools.wraps(call)
    def watched(*args: Any, **kwargs: Any) -> Any:
        if _native.inside:
            return info.function(*args, **kwargs)
        if capture.active() is not None:
            return call(*args, **kwargs)
        seen = observed.of(info.name)
        seen.calls += 1
        if seen.calls <= WARM or seen.calls % EVERY or len(seen.captured) >= MOST:
            return call(*args, **kwargs)
        seen.uncompared = why_not(info, seen, args, kwargs)
        first = not seen.uncompared and len(seen.captured) % 2
        if first:
            _made_natively(info, seen, args, kwargs)
        synchronize()
        start = time.perf_counter()
        result = call(*args, **kwargs)
        seen.captured.append((time.perf_counter() - start) * 1e6)
        if not first and not seen.uncompared:
            _made_natively(info, seen, args, kwargs)
        return result

    return watched


def why_not(info: Any, seen: observed.Observed, args: tuple, kwargs: dict) -> str:
    """Why a call is not made again by the framework; "" if it may be."""
    if "mindspore" not in sys.modules or _arrays(args, kwargs):
        return "dvm.tensor arrays have no other engine"
    from . import mindspore_compat

    if mindspore_compat.gradient_wanted():
        return "a gradient is taken of it, and that would be another"
    if seen.changes or seen.untraceable:
        return f"{'it changes a tensor in place' if seen.changes else seen.untraceable}, and doing that twice is not the same"
    # Looked at anew for every sample: what a call reaches depends on its arguments, closure and globals, too.
    return _failed.get(info.function.__code__) or repeatable.why_not(info.function, args, kwargs)


def _arrays(args: tuple, kwargs: dict) -> bool:
    from .array import Array

    return any(isinstance(value, Array) for value in (*args, *kwargs.values()))


def _made_natively(info: Any, seen: observed.Observed, args: tuple, kwargs: dict) -> None:
    synchronize()
    _native.inside = True
    start = time.perf_counter()
    try:
        info.function(*args, **kwargs)
        synchronize()
    except Exception as error:  # the captured call is the program's
        _failed[info.function.__code__] = f"the framework's own call failed ({type(error).__name__})"
        return
    finally:
        _native.inside = False
    seen.native.append((time.perf_counter() - start) * 1e6)


def synchronize() -> None:
    """Waits for what MindSpore has queued."""
    if "mindspore" in sys.modules:
        from . import mindspore_compat

        mindspore_compat.synchronize()


@functools.cache
def _measured_dispatch() -> float:
    from mindspore import Tensor, ops

    x = Tensor([1.0])
    times = []
    for _ in range(9):
        start = time.perf_counter()
        for _ in range(50):
            ops.add(x, x)
        synchronize()
        times.append((time.perf_counter() - start) / 50 * 1e6)
    return min(times)


def dispatch_us() -> float:
    """What MindSpore needs for an op of one element; 0 if calls are not sampled or it is not used."""
    if not on or "mindspore" not in sys.modules or capture.active() is not None:
        return 0.0
    from . import mindspore_compat

    return 0.0 if mindspore_compat.gradient_wanted() else _measured_dispatch()
