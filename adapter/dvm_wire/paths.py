"""What can be a file's path at all."""
from __future__ import annotations

import os
from typing import Any


def is_path(value: Any) -> bool:
    """A text that the operating system takes: not empty, without a NUL and without half a surrogate pair."""
    try:
        return isinstance(value, str) and bool(value) and b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:
        return False
