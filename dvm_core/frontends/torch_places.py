"""Where the nodes of Dynamo's graphs come from: the user's line with its columns, and the module it ran in."""
from __future__ import annotations

import functools
import linecache
import os
import re
from typing import Any

import torch

from .. import _core
from . import torch_compat as compat

_HOME = os.path.dirname(torch.__file__) + os.sep
_FRAME = re.compile(r'^  File "([^"\n]+)", line (\d+), in (\S+)(?:\n    (?! )(.*)(?:\n    ([ ~^]+)$)?)?', re.M)
_STEP = re.compile(r"\._modules\['([^']*)'\]|\[['\"]?([^'\"\]]*)['\"]?\]")
_ROOT = re.compile(r"^[LG]\['[^']*'\]")


def with_ends() -> None:
    """From now on Dynamo's traces mark where an expression ends: without its last line they mark all up to the end of the first."""
    base = compat.spans and compat.spans.Translator
    plain = getattr(base, "frame_summary", None)
    if plain is None:
        return

    @functools.wraps(plain)
    def summary(self: Any) -> Any:
        made = plain(self)
        positions = getattr(getattr(self, "current_instruction", None), "positions", None)
        if positions is not None:
            made.end_lineno = positions.end_lineno
        return made

    base.frame_summary = summary


with_ends()


def place_of(node: Any) -> int:
    """The place of a node of Dynamo's graph, 0 if nothing is known. Its function is `forward (layers.0)` inside a module of a model;
    where all of the model is PyTorch's own modules there is no line, and the module alone is named."""
    frames = [found for found in _FRAME.findall(node.meta.get("stack_trace") or "") if not found[0].startswith((_HOME, "<eval_with_key>"))]
    if not frames:
        module = module_of(node, stock=True)
        return _core.place("", 0, function=module) if module else 0
    file, line, function, text, marks = frames[-1]
    module = module_of(node, stock=False)
    column, end = _columns(linecache.getline(file, int(line)), text, marks)
    return _core.place(file, int(line), int(line), column, end, f"{function} ({module})" if module else function)


def module_of(node: Any, stock: bool) -> str:
    """The path of the innermost module, `layers.0.out`; "" in the model itself. stock: whether PyTorch's own modules count, whose code no
    line of the user's is in."""
    found = ""
    for path, kind in (node.meta.get("nn_module_stack") or {}).values():
        if stock or not getattr(kind, "__module__", str(kind)).startswith("torch."):
            found = path
    return _STEP.sub(lambda m: f".{m[1] or m[2]}", _ROOT.sub("", found)).strip(".")


def _columns(line: str, text: str, marks: str) -> tuple[int, int]:
    """First column from 1 and the one after the last, in UTF-16 units, of what a trace has marked; zeros if it marked nothing or the line
    is another by now."""
    if not marks or line.strip() != text.strip():
        return 0, 0
    indent = len(line) - len(line.lstrip())
    first, last = len(marks) - len(marks.lstrip()), len(marks.rstrip())

    def units(characters: int) -> int:
        return len(line[:indent + characters].encode("utf-16-le")) // 2 + 1

    return units(first), units(last)
