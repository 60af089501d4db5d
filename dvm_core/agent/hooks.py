"""Hooks in programs that the core may have forgotten meanwhile: it keeps only the newest thousands."""
from __future__ import annotations

import contextlib

from .. import _core


def clear_hook(program: int, instruction: int, kind: int, hook: int) -> None:
    """Takes a hook out; of a program that the core has forgotten, there is nothing to take out."""
    with contextlib.suppress(_core.Error):
        _core.clear_hook(program, instruction, kind, hook)


def program_name(number: int) -> str | None:
    """None for a program that the core has forgotten."""
    try:
        return str(_core.program(number).name)
    except _core.Error:
        return None
