"""Hot reload of code inside compiled models. Dynamo notices new code of the function it compiled and of functions that it found in globals,
but not of methods that it inlined: a model would go on with the old ones."""
from __future__ import annotations

import gc
import os
from types import CodeType, FunctionType

from torch._dynamo.symbolic_convert import InstructionTranslator
from torch._guards import TracingContext

_roots: list[tuple[CodeType, frozenset[str]]] = []  # code that Dynamo compiled, the files of all code it found in there
_files: set[str] = set()  # all that ever were among them, as real paths


def compiled() -> None:
    """Called while Dynamo hands over a graph: remembers what it was made of."""
    translator = InstructionTranslator.current_tx()
    root: CodeType = translator.f_code
    files = frozenset(code.co_filename for code in [root, *(TracingContext.get_traced_code() or ())])
    if not any(known is root and its >= files for known, its in _roots):
        _roots.append((root, files))
        _files.update(map(os.path.realpath, files))


def shows(path: str) -> bool:
    """Whether Dynamo ever found code of that file in what it compiled."""
    return os.path.realpath(path) in _files


def outdated(path: str) -> int:
    """Code of that file was exchanged: what was compiled from it is compiled again when it is called next. Returns how many functions.

    A function gets a copy of its own code, for which Dynamo has nothing compiled; calls that run now end with the old one."""
    real = os.path.realpath(path)
    stale = [(root, files) for root, files in _roots if any(os.path.realpath(file) == real for file in files)]
    _roots[:] = [entry for entry in _roots if not any(entry is other for other in stale)]
    again = 0
    for root in {id(root): root for root, _ in stale}.values():
        for function in gc.get_referrers(root):
            if isinstance(function, FunctionType) and function.__code__ is root:
                function.__code__ = root.replace()
                again += 1
    return again
