"""What the last run told of a source file's lines, kept where the language server finds it: one JSON file per source file.

The program writes (`save`), the editor's side reads (`load`). The folder is the user's own cache, readable by the user alone. A file is
data from outside to whoever reads it: `load` gives None for what is not of this form.

A line's values, as recorded, oldest first, each an object: `op`, `dtype`, `dims` (a list of [symbol or "", lowest, highest extent]),
`name` ("" if the program gives none), `line`, `column`, `endLine`, `endColumn` (lines from 1, columns from 1 in UTF-16 code units),
`backward`, `program`, `instruction`, `area`, `areas`, `cut` (why the area ends), `lines` (those whose instructions share the area),
`folded` (the line that an instruction was merged into, 0 if it runs itself), `ns` (its share of its area's time in the last launch),
`gradient` (whether its op has one), `stats`.
"""
from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .frames import dump

VERSION = 1
MOST_BYTES = 1 << 24  # of a file that is read or written
_MOST_FILES = 500
_NUMBERS = ("line", "column", "endLine", "endColumn", "program", "instruction", "area", "areas", "folded", "ns")
_TEXTS = ("op", "dtype", "name", "cut")
_FUNCTION: dict[str, type] = {"name": str, "line": int, "launches": int, "us": float, "shapes": int, "verdict": str, "why": str, "do": str}
_NOTICE: dict[str, type] = {"text": str, "line": int, "category": str}


def cache(environment: Mapping[str, str] = os.environ) -> Path:
    """$DVM_CACHE, or `dvm` in the user's cache folder."""
    given = environment.get("DVM_CACHE")
    if given:
        return Path(given)
    return Path(environment.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")) / "dvm"


def folder() -> Path:
    """Of the files about the last run."""
    return cache() / "lines"


def file_of(path: str) -> Path:
    """The file about the source file `path`, whatever links lead to it."""
    return folder() / (hashlib.sha256(os.path.realpath(path).encode("utf-8", "surrogatepass")).hexdigest()[:32] + ".json")


def save(path: str, told: dict[str, Any]) -> None:
    """Writes what a run told of `path`, whole or not at all. Raises OSError; what would be too large is not kept."""
    data = dump({"version": VERSION, "path": os.path.realpath(path), **told})
    if len(data) > MOST_BYTES:
        return
    target = file_of(path)
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    first = not target.exists()
    partial = target.with_suffix(f".{os.getpid()}.part")
    try:
        with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
            out.write(data)
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
    if first:
        _forget_oldest(target.parent)


def _forget_oldest(where: Path) -> None:
    ages = []
    for kept in where.glob("*.json"):
        try:
            ages.append((kept.stat().st_mtime, kept))
        except OSError:
            continue  # another program has just removed it
    for _, old in sorted(ages)[:-_MOST_FILES]:
        old.unlink(missing_ok=True)


def load(path: str) -> dict[str, Any] | None:
    """What the last run told of `path`: {"texts": {line: its text}, "values": [...], "functions": [...], "notices": [...]}."""
    file = file_of(path)
    try:
        if file.stat().st_size > MOST_BYTES:
            return None
        told = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(told, dict) or told.get("version") != VERSION or told.get("path") != os.path.realpath(path):
        return None
    texts = told.get("texts")
    return {
        "texts": {int(line): text for line, text in texts.items() if line.isdecimal() and isinstance(text, str)}
        if isinstance(texts, dict) else {},
        "values": [value for value in _objects(told.get("values")) if _is_value(value)],
        "functions": [function for function in _objects(told.get("functions")) if _fits(function, _FUNCTION)],
        "notices": [notice for notice in _objects(told.get("notices")) if _fits(notice, _NOTICE)],
    }


def _objects(items: Any) -> list[dict[str, Any]]:
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _is_count(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number >= 0


def _fits(entry: dict[str, Any], types: dict[str, type]) -> bool:
    """Whether every field is there and of its type; counts are not negative, times are numbers."""
    return all(_is_count(entry.get(name)) if kind is int else _is_number(entry.get(name)) if kind is float
               else isinstance(entry.get(name), kind) for name, kind in types.items())


def _is_number(number: Any) -> bool:
    return isinstance(number, (int, float)) and not isinstance(number, bool) and 0 <= number < 1e300


def _is_value(value: dict[str, Any]) -> bool:
    dims, lines = value.get("dims"), value.get("lines")
    return (
        all(_is_count(value.get(name)) for name in _NUMBERS)
        and all(isinstance(value.get(name), str) for name in _TEXTS)
        and isinstance(value.get("backward"), bool)
        and isinstance(lines, list) and all(_is_count(line) for line in lines)
        and isinstance(dims, list)
        and all(isinstance(d, list) and len(d) == 3 and isinstance(d[0], str) and _is_count(d[1]) and _is_count(d[2]) for d in dims)
        and 0 < value["line"] <= value["endLine"]
        and (value.get("stats") is None or isinstance(value["stats"], dict))
    )
