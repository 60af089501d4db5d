"""Breakpoints on ops: before every instruction of that name, in every program."""
from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from .. import _core
from .breakpoints import Point
from .commands import Answer, Arguments, command, need
from .conditions import BadCondition, Gate

if TYPE_CHECKING:
    from .session import Session

NAMES = frozenset(name for name, *_ in _core.OPS)


def _op_of(item: Arguments) -> Point:
    name = need(item, "name", str)
    if name not in NAMES:
        near = difflib.get_close_matches(name, sorted(NAMES), 3)
        raise BadCondition(f"there is no op {name[:80]!r}" + (f"; do you mean {' or '.join(near)}?" if near else ""))
    return Point(need(item, "id", int), 0, Gate(), op=name)


@command("opBreakpoints")
def op_breakpoints(session: Session, arguments: Arguments) -> Answer:
    """items: all of them. Those that are in no program yet are bound when one comes, which is told by `bound`."""
    return {"results": session.breakpoints.set_ops(need(arguments, "items", list), _op_of)}
