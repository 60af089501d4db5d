"""Whether one reload can be taken back while later ones of other files stay."""
from __future__ import annotations

import ast
import os
from collections.abc import Iterable

from dvm_wire import syntax

from .transaction import Transaction


def reason(undone: Iterable[Transaction], later: Iterable[Transaction]) -> str:
    """Why the transactions cannot be undone: what a later one of another file has of them. "" if nothing."""
    undone = list(undone)
    places = {assignment.where for done in undone for assignment in done.plan.patch.assignments if assignment.where}
    added = {edit.key.rpartition(".")[2] for done in undone for edit in done.plan.edits if edit.kind.startswith("new ")}
    for other in later:
        name = os.path.basename(other.path)
        if places & {assignment.where for assignment in other.plan.patch.assignments}:
            return f"the later reload of {name} changed the same things again: undo that one first"
        used = sorted(added & (_names(other.texts[1]) - _names(other.texts[0]))) if added else []
        if used:
            return f"the later reload of {name} uses `{used[0]}`, which this one brought in: undo that one first"
    return ""


def _names(text: str) -> set[str]:
    """All names a text mentions."""
    found: set[str] = set()
    for node in ast.walk(syntax.parse(text)):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.alias):
            found.add(node.name)
    return found
