"""What a save is answered with: applied at step N, unchanged, or refused and why."""
from __future__ import annotations

import os
import re
import traceback
from dataclasses import dataclass, field
from typing import Any

from .edits import APPLY, Edit

_REVERSED = {"inserted": "deleted", "deleted": "inserted", **{f"new {what}": f"removed {what}" for what in (
    "constant", "class constant", "function", "import")}}
APPLIED, UNCHANGED, REFUSED = "applied", "unchanged", "refused"
_FRAME = re.compile(r'^\s*File "([^"\n]+)", line (\d+)', re.M)
FOREIGN = "no module of the program was made from this file"


@dataclass
class Report:
    """The answer to one reload. `ms`: from the request until the new code was in force. `held_ms`: of those, on the training thread."""
    outcome: str
    path: str = ""
    step: int = 0  # applied: the first step with the new code
    reasons: list[str] = field(default_factory=list)
    changes: list[dict[str, Any]] = field(default_factory=list)  # {"function", "what", "old", "new", "line"}
    patched: int = 0
    total: int = 0
    ms: float = 0.0
    held_ms: float = 0.0
    pending: bool = False  # accepted, but a call that began before has to end first
    undone: bool = False  # applied: what is in force is what was before

    def message(self) -> dict[str, Any]:
        """As the wire and DAP carry it."""
        return {
            "outcome": self.outcome, "path": self.path, "step": self.step, "reasons": self.reasons, "changes": self.changes,
            "instructionsPatched": self.patched, "instructionsTotal": self.total, "ms": round(self.ms, 3), "heldMs": round(self.held_ms, 3),
            "pending": self.pending, **({"undone": True} if self.undone else {}),
        }


def changes_of(edits: list[Edit]) -> list[dict[str, Any]]:
    """One entry per constant that differs, and per statement where more than constants differ."""
    found = []
    for edit in edits:
        if edit.kind == "body" and edit.value:
            found += [_change(edit.key, c.what, c.old, c.new, c.line) for c in edit.value]
        elif edit.verdict == APPLY:
            found.append(_change(edit.key, edit.kind, edit.old, edit.new, edit.line))
    return found


def reversed_changes(changes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**change, "what": _REVERSED.get(change["what"], change["what"]), "old": change["new"], "new": change["old"]}
            for change in changes]


def _change(function: str, what: str, old: str, new: str, line: int) -> dict[str, Any]:
    return {"function": function, "what": what, "old": old, "new": new, "line": line}


def failure(error: BaseException, path: str) -> str:
    """`model.py:42: ValueError: ...` with the deepest line of the edited file the error came through, or that its text names: PyTorch's
    compiler reads code that does not run."""
    text, _, read = str(error).partition("\n\nfrom user code:\n")
    text = text.partition("\n  Hint:")[0]
    frames = [(entry.filename, entry.lineno or 0) for entry in traceback.extract_tb(error.__traceback__)]
    frames += [(file, int(line)) for file, line in _FRAME.findall(read)]  # read, not run: deeper than the line of the call
    line = next((line for file, line in reversed(frames) if os.path.realpath(file) == os.path.realpath(path)), 0)
    place = f"{os.path.basename(path)}:{line}: " if line else ""
    return f"{'' if place and text.startswith(path) else place}{type(error).__name__}{': ' * bool(text)}{text}"


def syntax_error(error: SyntaxError, path: str) -> str:
    return f"{os.path.basename(path)}:{error.lineno or 1}: {error.msg}" + (f": {error.text.strip()}" if error.text else "")
