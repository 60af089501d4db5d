"""Sources that are no files: listings of programs; and the places variables point to."""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .channel import Message
from .references import FIRST_LISTING
from .registry import Body, Needs, request
from .stack import source_of
from .variables import Place

if TYPE_CHECKING:
    from .session import Session


@dataclass(frozen=True)
class Listing:
    """A program as text at one level; the same one has the same number for the whole session."""

    program: int
    level: str


def listing_source(session: Session, program: int, name: str, level: str = "tensor") -> Message:
    numbers: dict[Listing, int] = session.listing_numbers
    listing = Listing(program, level)
    if listing not in numbers:
        numbers[listing] = session.listings.add(listing)
    return {"name": f"{name}.{level}.dvm", "sourceReference": numbers[listing], "origin": f"program {program}, {level} level",
            "presentationHint": "deemphasize"}


@request("source")
async def source(session: Session, arguments: Body) -> Body:
    given: Any = (arguments.get("source") or {}).get("sourceReference") or arguments.get("sourceReference")
    if not isinstance(given, int) or given < FIRST_LISTING:
        return await session.python.ask("source", arguments)
    listing = session.listings.get(given, Listing)
    told = await session.tensors.ask("program", program=listing.program, level=listing.level)
    return {"content": str(told.get("text", "")), "mimeType": "text/x-dvm"}


@request("loadedSources", supportsLoadedSourcesRequest=True)
async def loaded_sources(session: Session, arguments: Body) -> Body:
    """The files captured programs come from, and a listing of each program."""
    if not session.has_agent:
        return {"sources": []}
    programs = (await session.tensors.ask("programs")).get("programs") or []
    files = sorted({str(program["file"]) for program in programs if program.get("file")})
    return {"sources": [source_of(path) for path in files]
            + [listing_source(session, program["id"], f"{program.get('name', 'program')}-{program['id']}") for program in programs]}


@request("locations", needs=Needs.STOPPED)
async def locations(session: Session, arguments: Body) -> Body:
    place = session.references.get(arguments.get("locationReference"), Place)
    return {"source": source_of(place.path), "line": place.line}

