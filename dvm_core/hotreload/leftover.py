"""Classes and decorated functions that are gone from a file's text and still defined in the program: they may come back into the text."""
from __future__ import annotations

import dataclasses
import os
from types import CodeType

from .edits import Edit
from .parse import Definition, Source, all_codes

_Kept = dict[str, Definition]  # by key, with the definitions in them


class Leftover:
    """By file. Plain functions are not among them: one that comes back is made anew."""

    def __init__(self) -> None:
        self._of: dict[str, _Kept] = {}

    def note(self, path: str, old: Source, edits: list[Edit]) -> None:
        """edits: those that take definitions from the text. Of no matter if they are refused: what the text has counts."""
        kept = self._of.setdefault(os.path.realpath(path), {})
        for edit in edits:
            gone = old.definitions.get(edit.key)
            if edit.kind == "removed" and gone is not None and (gone.is_class or gone.decorators):
                for key, definition in old.definitions.items():
                    if key == edit.key or key.startswith(edit.key + "."):
                        kept[key] = dataclasses.replace(definition, lines=old.text_of(definition))

    def codes(self, path: str) -> set[CodeType]:
        """Of their functions."""
        return {code for definition in self._of.get(os.path.realpath(path), {}).values() if definition.code is not None
                for code in all_codes(definition.code)}

    def returned(self, path: str, old: Source, new: Source) -> Source:
        """The old text with those that the new one has again."""
        kept = self._of.get(os.path.realpath(path), {})
        back = {key: definition for key, definition in kept.items()
                if _root(key, kept) in new.definitions and _root(key, kept) not in old.definitions}
        return dataclasses.replace(old, definitions={**old.definitions, **back}) if back else old


def _root(key: str, kept: _Kept) -> str:
    """The outermost definition that was kept with it."""
    parts = key.split(".")
    return next(outer for outer in (".".join(parts[:i + 1]) for i in range(len(parts))) if outer in kept)
