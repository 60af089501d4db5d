"""The protocol log (`--log FILE`): every message of every channel, one JSON line each."""
from __future__ import annotations

import json
import re
import time
from typing import Any, TextIO

_SECRET = "DVM_TOKEN"
_IN_TEXT = re.compile(_SECRET + r"(\W{1,8})[0-9a-f]{32}")  # in the words an attached program is given it with


def _without_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: "***" if key in (_SECRET, "token") else _without_secrets(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_secrets(item) for item in value]
    return _IN_TEXT.sub(_SECRET + r"\1***", value) if isinstance(value, str) and _SECRET in value else value


class Log:
    """Writes to a file opened for it, or nowhere. A log that cannot be written is given up, never the session."""

    def __init__(self, file: TextIO | None = None) -> None:
        self._file = file
        self._start = time.monotonic()

    def message(self, direction: str, peer: str, message: dict[str, Any]) -> None:
        """A message as it was sent or received; tokens are masked."""
        if self._file is not None:
            self._line({"direction": direction, "peer": peer, "message": _without_secrets(message)})

    def note(self, text: str) -> None:
        """A remark of the adapter's own."""
        if self._file is not None:
            self._line({"note": text})

    def _line(self, entry: dict[str, Any]) -> None:
        entry = {"ms": round((time.monotonic() - self._start) * 1000, 1), **entry}
        try:
            assert self._file is not None
            self._file.write(json.dumps(entry, separators=(",", ":")) + "\n")
            self._file.flush()
        except (OSError, ValueError, TypeError):
            self._file = None
