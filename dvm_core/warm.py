"""Shapes of the last run, kept in a small file, so that their code is made before they come again.

The file holds, for each program, which shapes it was launched with and how often: no code, no data. It is a cache: whatever is wrong with
it costs the warm start and nothing else.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any

from . import _core

VERSION = 1
MOST = 4096  # sets of shapes in the file
LONGEST = 8 << 20  # bytes of a file that is read


_OURS = re.compile(rb'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"shapes"')  # how a file of shapes begins, of any version


def is_ours(path: str | os.PathLike[str]) -> bool:
    """Whether it may be written anew: nothing is there, or an empty file, or one of shapes."""
    target = Path(path)
    if not target.exists():
        return True
    if not target.is_file():
        return False
    with open(target, "rb") as file:
        begin = file.read(64)
    return not begin or _OURS.match(begin) is not None


def load(path: str | os.PathLike[str]) -> int:
    """Has the shapes in the file compiled when their programs are made; how many there are. 0 if there is no usable file."""
    try:
        with open(path, "rb") as file:
            shapes = _shapes(json.loads(file.read(LONGEST)))
        _core.know_shapes(shapes)
    except (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError, _core.Error):
        return 0
    return len(shapes)


def save(path: str | os.PathLike[str]) -> int:
    """Writes the shapes of this run, most used first; how many. Shapes that came once are left out if others came again.

    A run without a launch leaves the file as it is. Raises OSError, also for a file of something else, which is left alone.
    """
    if not is_ours(path):
        raise OSError(f"{str(path)!r} is no file of shapes: left alone")
    used = _core.shapes_used(MOST)
    if not used:
        return 0
    again = [entry for entry in used if entry[5] > 1]
    entries = [
        {"function": name, "structure": str(structure), "geometry": geometry, "kept": kept, "values": values, "launches": launches}
        for name, structure, geometry, kept, values, launches in again or used
    ]
    target = Path(path).resolve()
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".tmp")
    try:
        with open(handle, "w", encoding="utf-8") as file:
            json.dump({"version": VERSION, "shapes": entries}, file)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
    return len(entries)


def _shapes(told: Any) -> list[tuple[int, list[int], list[int], int]]:
    if told["version"] != VERSION:
        return []
    return [(int(e["structure"]), list(e["geometry"]), list(e["kept"]), int(e["values"])) for e in told["shapes"][:MOST]]
