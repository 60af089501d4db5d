"""Parsing beside threads that parse, too."""
from __future__ import annotations

import ast
import os
import threading
from typing import Any

_TRIES = 20
_lock = threading.Lock()


def _renew() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_renew)  # a thread that held it is the parent's


def parse(text: str, filename: str = "<unknown>", mode: str = "exec") -> Any:
    """`ast.parse`. CPython 3.11 counts the depth of the tree that it makes for the whole interpreter: of two threads that parse at once,
    the program's or a debugger's among them, one may get a SystemError instead of its tree. That one parses again."""
    with _lock:
        for _ in range(_TRIES):
            try:
                return ast.parse(text, filename, mode)
            except SystemError as error:
                if "recursion depth" not in str(error):
                    raise
    return ast.parse(text, filename, mode)
