"""Scripts that a command runs: `import dvm` in them, what is taken from them, and what a user sees of their exceptions."""

from __future__ import annotations

import os
import runpy
import sys
import types
from pathlib import Path
from typing import Any

from .errors import ArgumentError, Error, chain

_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep


def serve_dvm() -> None:
    """Makes `import dvm` give this package, for scripts written for DVM. A real DVM that is already imported is left alone."""
    sys.modules.setdefault("dvm", sys.modules[__package__ or "dvm_core"])


def resolve(path: Path, name: str, as_script: bool) -> Any:
    """The object `name` (dots allowed) of a file that is imported, or run as a script. Raises ArgumentError if there is none."""
    serve_dvm()
    sys.path.insert(0, str(path.resolve().parent))
    sys.argv = [str(path)]
    names = runpy.run_path(str(path), run_name="__main__" if as_script else path.stem)
    first, *rest = name.split(".")
    if first not in names:
        raise ArgumentError(f"{path} has no {first!r}")
    target = names[first]
    for part in rest:
        if not hasattr(target, part):
            raise ArgumentError(f"{path}: {name!r}: there is no {part!r}")
        target = getattr(target, part)
    return target


def run(path: str) -> int:
    """Runs a script to its end; what it exits with. What it raises is printed, but for our errors, which go on."""
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as end:
        return exit_code(end.code)
    except Error:
        raise
    except Exception as error:
        if not tell(error):
            raise
        return 1
    return 0


def tell(error: BaseException) -> bool:
    """Prints an exception as Python would have if the script had been run by it. False: it is none of the script's, nothing is printed.

    Frames of the VM are left out of errors that it raises on purpose and of exceptions that the script raises; where the VM itself fails,
    they are what is wanted.
    """
    links = chain(error)
    mine = [_own(link) for link in links]
    if mine[0] is None and not _ran(error.__traceback__):
        return False
    for link, frames in zip(links, mine, strict=True):
        link.__traceback__ = frames
    sys.excepthook(type(error), error, error.__traceback__)
    return True


def exit_code(code: object) -> int:
    """What Python makes of `sys.exit(code)`: a text is printed."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code
    print(code, file=sys.stderr)
    return 1


def _own(error: BaseException) -> types.TracebackType | None:
    frames: list[types.TracebackType] = []
    step = error.__traceback__
    while step is not None:
        frames.append(step)
        step = step.tb_next
    if frames and not isinstance(error, Error) and _of_vm(frames[-1]):  # ours has failed: from the script on
        first = next((at for at, frame in enumerate(frames) if not _of_vm(frame) and not _of_runpy(frame)), len(frames))
        kept = frames[first:]
    else:
        kept = [frame for frame in frames if not _of_vm(frame) and not _of_runpy(frame)]
    following = None
    for frame in reversed(kept):
        following = types.TracebackType(following, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return following


def _ran(step: types.TracebackType | None) -> bool:
    # Whether it comes of running a file: one that cannot be compiled has no frame of its own.
    last = None
    while step is not None:
        last, step = step, step.tb_next
    return last is not None and _of_runpy(last)


def _of_vm(step: types.TracebackType) -> bool:
    return os.path.abspath(step.tb_frame.f_code.co_filename).startswith(_OURS)


def _of_runpy(step: types.TracebackType) -> bool:
    return step.tb_frame.f_code.co_filename in ("<frozen runpy>", runpy.__file__)
