"""Sources that are no files: listings of programs; and the places variables point to."""
from __future__ import annotations

import hashlib
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


@dataclass(frozen=True)
class OldText:
    """A file as it was before a reload; calls that had begun by then run it."""

    path: str
    text: str


def old_source(session: Session, path: str, text: str) -> Message:
    """A source with the text that code from before a reload was compiled from. The same text has the same number for the whole session."""
    old = OldText(path, text)
    number = next((number for number, known in session.listings.each(OldText) if known == old), None) or session.listings.add(old)
    return {**source_of(path), "sourceReference": number, "origin": "the text before the reload",
            "checksums": [{"algorithm": "SHA256", "checksum": hashlib.sha256(text.encode()).hexdigest()}]}


@request("source", supportedChecksumAlgorithms=["SHA256"])
async def source(session: Session, arguments: Body) -> Body:
    given: Any = (arguments.get("source") or {}).get("sourceReference") or arguments.get("sourceReference")
    if not isinstance(given, int) or given < FIRST_LISTING:
        return await session.python.ask("source", arguments)
    if dict(session.listings.each(OldText)).get(given):
        return {"content": session.listings.get(given, OldText).text, "mimeType": "text/x-python"}
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

