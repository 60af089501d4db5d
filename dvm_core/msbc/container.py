"""The outside of a file: header, extent of the stream, trailer, sections. Nothing here looks at what an instruction means."""

from __future__ import annotations

from typing import Any

from . import layout as L


def header(buf: bytes) -> None:
    """Checks the 32 bytes before the stream."""
    if len(buf) < L.HEADER_SIZE + 1:
        raise L.MsbcError(len(buf), f"{len(buf)} bytes are too few for a header and an end of stream")
    if len(buf) > L.MAX_FILE:
        raise L.MsbcError(L.MAX_FILE, f"a file holds at most {L.MAX_FILE} bytes")
    if buf[:4] != L.MAGIC:
        raise L.MsbcError(0, f"magic is {bytes(buf[:4])!r}, not {L.MAGIC!r}")
    version = L.U32.unpack_from(buf, 4)[0]
    if version != L.VERSION:
        raise L.MsbcError(4, f"version is {version}; this reader knows {L.VERSION}")
    if any(buf[8 : L.HEADER_SIZE]):
        raise L.MsbcError(8, "reserved bytes must be zero")


def walk(buf: bytes) -> tuple[list[int], int]:
    """(offset of each instruction, offset of the end opcode). Raises MsbcError if the stream runs out of the file."""
    offsets = []
    at = L.HEADER_SIZE
    size = len(buf)
    try:
        while buf[at]:
            offsets.append(at)
            rank = buf[at + 3]
            if rank > L.MAX_RANK:  # said here, where it is still known: what follows would be garbage
                raise L.MsbcError(at + 3, f"rank {rank} is above {L.MAX_RANK}")
            p = at + 9 + 4 * (rank + buf[at + 1])  # past head, dims, dtype, output id, operand ids
            p += 1 + 8 * buf[p]  # attributes
            p += 3 + 9 * buf[p]  # immediates, debug_info
            if p >= size:
                raise IndexError
            at = p
    except IndexError:
        raise L.MsbcError(at, "the stream runs past the end of the file") from None
    return offsets, at


def find_section(buf: Any, kind: int) -> tuple[int, int, int] | None:
    """(offset, length, offset of the first section) of a section, None if the file has no such section. Checks what it reads, no more."""
    size = len(buf)
    if size < L.HEADER_SIZE + 1 + L.TRAILER.size:
        return None
    table, count, magic = L.TRAILER.unpack_from(buf, size - L.TRAILER.size)
    if magic != L.TRAILER_MAGIC:
        return None
    if count > L.MAX_SECTIONS or table + count * L.SECTION_ENTRY.size + L.TRAILER.size != size:
        raise L.MsbcError(size - L.TRAILER.size, "the trailer does not fit the file")
    entries = [L.SECTION_ENTRY.unpack_from(buf, table + i * L.SECTION_ENTRY.size) for i in range(count)]
    for number, (found, offset, length) in enumerate(entries):
        if not L.HEADER_SIZE < offset <= table or length > table - offset:
            raise L.MsbcError(table + number * L.SECTION_ENTRY.size, "a section lies outside the file")
        if found == kind:
            return offset, length, entries[0][1]
    return None


def sections(buf: bytes, stream_end: int) -> dict[int, tuple[int, int]]:
    """{kind: (offset, end)}. Sections must tile the file from the end of the stream to the section table: no byte is left unexplained."""
    size = len(buf)
    at = stream_end + 1
    if at == size:
        return {}
    if size - at < L.TRAILER.size:
        raise L.MsbcError(at, "bytes after the end of the stream that are no trailer")
    trailer = size - L.TRAILER.size
    table, count, magic = L.TRAILER.unpack_from(buf, trailer)
    if magic != L.TRAILER_MAGIC:
        raise L.MsbcError(trailer + 12, f"trailer magic is {magic!r}, not {L.TRAILER_MAGIC!r}")
    if count > L.MAX_SECTIONS:
        raise L.MsbcError(trailer + 8, f"{count} sections; at most {L.MAX_SECTIONS}")
    if table != trailer - count * L.SECTION_ENTRY.size or table < at:
        raise L.MsbcError(trailer, f"section table at {table:#x} does not end at the trailer")
    found: dict[int, tuple[int, int]] = {}
    for number in range(count):
        entry = table + number * L.SECTION_ENTRY.size
        kind, offset, length = L.SECTION_ENTRY.unpack_from(buf, entry)
        if offset != at or length > table - at:
            raise L.MsbcError(
                entry, f"section {number} at {offset:#x}+{length:#x} must follow the previous end {at:#x} and end before the table"
            )
        if kind in found:
            raise L.MsbcError(entry, f"two sections of kind {kind}")
        at += length
        found[kind] = (offset, at)
    if at != table:
        raise L.MsbcError(at, "bytes between the last section and the section table")
    return found
