"""The kinds of edits, and what each means for a program that is running."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

APPLY, NOTE, REFUSE = "apply", "note", "refuse"

# kind -> (verdict, what is said). {key}: the definition or name, {line}: in the new text, {old}, {new}: text before and after.
KINDS: dict[str, tuple[str, str]] = {
    "body": (APPLY, ""),
    "default": (APPLY, ""),
    "constant": (APPLY, ""),
    "class constant": (APPLY, ""),
    "new constant": (APPLY, ""),
    "new class constant": (APPLY, ""),
    "new function": (APPLY, ""),
    "new import": (APPLY, ""),
    "removed": (NOTE, "`{key}` is gone from the text; it stays defined in the running program until restart"),
    "removed class constant": (NOTE, "`{key}` is gone from the text; it stays defined in the running program until restart"),
    "annotation": (NOTE, "annotations of `{key}` changed; nothing that runs depends on them"),
    "signature": (REFUSE, "line {line}: parameters of `{key}` changed from ({old}) to ({new}); "
                          "running code passes the old ones: needs restart"),
    "defined again": (REFUSE, "line {line}: `{key}` defines a name that the text has more than once, before or now; "
                              "the one that runs would be another: needs restart"),
    "computed default": (REFUSE, "line {line}: the default `{new}` of `{key}` is computed when the function is defined: needs restart"),
    "decorator": (REFUSE, "line {line}: decorators of `{key}` changed; they ran when it was defined: needs restart"),
    "function kind": (REFUSE, "line {line}: `{key}` was {an_old} and became {an_new}; its callers do not expect that: needs restart"),
    "class layout": (REFUSE, "line {line}: {new} of class `{key}` changed; its objects exist already: needs restart"),
    "new class": (REFUSE, "line {line}: class `{key}` is new; making it runs its body: needs restart"),
    "new decorated function": (REFUSE, "line {line}: `{key}` is new and has decorators, which would have to run: needs restart"),
    "statement": (REFUSE, "line {line}: `{new}` is top-level code, which is never run again: needs restart"),
    "removed statement": (REFUSE, "line {line}: `{old}` was removed here, but it has run already: needs restart"),
    "future import": (REFUSE, "line {line}: `{new}` changes how the whole file is compiled: needs restart"),
    "star import": (REFUSE, "line {line}: `{new}` is new; which names it binds is not known from the text: needs restart"),
}


@dataclass(frozen=True)
class Changed:
    """One difference inside a body. what: "constant", "inserted" or "deleted" for a statement, "body" for one that was replaced."""
    what: str
    old: str
    new: str
    line: int  # in the new text; for what was deleted, that of what follows


@dataclass
class Edit:
    kind: str
    key: str
    line: int  # in the new text; for what was removed, where it would be
    old: str = ""
    new: str = ""
    # "body": list of Changed; "constant" kinds: (old value, new value); "default": {parameter: value}; "new import": the import
    value: Any = None

    @property
    def verdict(self) -> str:
        return KINDS[self.kind][0]

    @property
    def text(self) -> str:
        return KINDS[self.kind][1].format(key=self.key, line=self.line, old=self.old, new=self.new,
                                          an_old=_one(self.old), an_new=_one(self.new))


def _one(kind: str) -> str:
    return f"{'an' if kind[:1] in tuple('aeiou') else 'a'} {kind}"


MISSING = object()
