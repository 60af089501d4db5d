"""Why a name that a captured function has is no instruction's: it is an argument of it, or what a function that it calls has returned."""
from __future__ import annotations

import ast
import os
from collections.abc import Iterable
from typing import Any

from . import naming
from .places import Place, Texts, function_around, place, real

_LONGEST = 40  # characters of a call that is shown
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def why(name: str, path: str, programs: Iterable[Any], texts: Texts) -> str:
    """What to watch instead, "" where the name is neither. path: of the file that is meant, "" for any."""
    for program in programs:
        places = [place(instruction.place) for instruction in program.instructions]
        seen: set[tuple[str, str]] = set()
        for where in places:
            if where.backward or not where.path or (where.path, where.function) in seen or (path and real(path) != where.real):
                continue
            seen.add((where.path, where.function))
            function = function_around(texts.text(where.path), where.line)
            if function is None:
                continue
            if name in _arguments(function):
                return _argument(name, where)
            if (call := _call(function, name)) is not None:
                return _returned(name, call, where, program, places)
    return ""


def _argument(name: str, where: Place) -> str:
    return f"; {name} is an argument of {where.function}: it is watched from the next call on in which an instruction reads it as a tensor"


def _returned(name: str, call: ast.Assign, where: Place, program: Any, places: list[Place]) -> str:
    end = call.end_lineno or call.lineno
    after = next((index for index, there in enumerate(places) if _beside(there, where) and there.line > end), len(places))
    text = _written(call.value)
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    maker = next((index for index in reversed(range(after)) if places[index].path and not places[index].backward), None)
    if maker is None or _beside(places[maker], where):
        return f"; {name} is what {text} returns: watch a name inside of that"
    there, named = places[maker], naming.of_program(program).get(maker)
    return f"; {name} is what {text} returns, made at {os.path.basename(there.path)}:{there.line}: watch " + (
        f"{named}, as it is called there" if named else "that line, or give the value a name there")


def _beside(there: Place, where: Place) -> bool:
    return (there.path, there.function, there.backward) == (where.path, where.function, False)


def _written(call: ast.expr) -> str:
    try:
        return ast.unparse(call)
    except RecursionError:
        return "a call"


def _arguments(function: _Function) -> set[str]:
    given = function.args
    return {one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg) if one is not None}


def _call(function: _Function, name: str) -> ast.Assign | None:
    return next((node for node in ast.walk(function) if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
                 and any(isinstance(target, ast.Name) and target.id == name for target in node.targets)), None)
