"""The requests of a tensor's page: a part that fits a screen, statistics, the difference of two. All is computed in the program."""
from __future__ import annotations

from typing import TYPE_CHECKING

from .registry import Body, Needs, request
from .tensors import given, named_tensor

if TYPE_CHECKING:
    from .session import Session

_WINDOW = ("axes", "indices", "rows", "columns", "most")


@request("dvm/view", needs=Needs.AGENT)
async def view(session: Session, arguments: Body) -> Body:
    """A tensor as in dvm/tensor, or what a watch keeps (`watchId`, `snapshot`): its facts, and two axes of it, shrunken."""
    named = await named_tensor(session, arguments)
    return await session.tensors.ask("view", **named, **given(arguments, (*_WINDOW, "texts", "shades")))


@request("dvm/viewStats", needs=Needs.AGENT)
async def view_statistics(session: Session, arguments: Body) -> Body:
    """Statistics of the whole tensor: of a large one they take a while, and nothing waits for them."""
    return await session.tensors.ask("viewStats", **await named_tensor(session, arguments))


@request("dvm/compare", needs=Needs.AGENT)
async def compare(session: Session, arguments: Body) -> Body:
    """`a` less `b`: each names a tensor as in dvm/view; `b` may also be another process's bytes, as `data`, `dtype` and `shape`."""
    sides: Body = {}
    for side in ("a", "b"):
        named = arguments[side]
        sides[side] = named if named.get("data") is not None else await named_tensor(session, named)
    return await session.tensors.ask("compare", **sides, **given(arguments, (*_WINDOW, "tolerance", "relative")))
