"""The gate every file passes: bytes in, checked parts out. Nothing else in this package reads a file that has not come through here."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from . import container, rules, sections
from . import layout as L
from .code import Place
from .stream import Stream, read


@dataclass
class Checked:
    """A file that has passed: its columns and sections."""

    stream: Stream
    operands: np.ndarray  # local ids, in the order of stream.operands
    symbols: sections.Symbols | None = None
    places: list[Place] = field(default_factory=list)
    place_of: np.ndarray | None = None
    constants: dict[int, np.ndarray] = field(default_factory=dict)
    kinds: tuple[int, ...] = ()  # the sections there are


def check(data: bytes | bytearray | memoryview) -> Checked:
    """Checks everything about a file. Raises MsbcError naming offset and rule; never anything else, whatever the bytes are."""
    buf = bytes(data)
    container.header(buf)
    stream = read(buf)
    parts = container.sections(buf, stream.end)
    symbols = sections.symbols(buf, parts[L.SYMBOLS], stream) if L.SYMBOLS in parts else None
    dtypes = ranks = None
    if symbols is not None:
        dtypes = np.array([item.dtype for item in symbols.inputs], np.int64)
        ranks = np.array([len(item.shape) for item in symbols.inputs], np.int64)
    out = Checked(stream, rules.check(stream, dtypes, ranks), symbols, kinds=tuple(parts))
    if L.INDEX in parts:
        sections.index(buf, parts[L.INDEX], stream)
    if L.SOURCE_MAP in parts:
        out.places, out.place_of = sections.source_map(buf, parts[L.SOURCE_MAP], stream)
        _lines(stream, out)
    if L.HASHES in parts:
        sections.hashes(buf, parts[L.HASHES], stream)
    if L.CONSTANTS in parts:
        out.constants = sections.constants(buf, parts[L.CONSTANTS], symbols.inputs if symbols else [])
    return out


def verify(data: bytes | bytearray | memoryview) -> None:
    """Raises MsbcError, naming offset and rule, unless the bytes are a program that can be loaded."""
    check(data)


def _lines(stream: Stream, checked: Checked) -> None:
    lines = np.array([place.line for place in checked.places] or [0], np.int64)
    assert checked.place_of is not None
    expected = np.where(checked.place_of < 0, L.NO_LINE, np.minimum(lines[np.maximum(checked.place_of, 0)], L.LONG_LINE))
    bad = np.flatnonzero(expected != stream.line)
    if bad.size:
        first = int(bad[0])
        raise L.MsbcError(
            int(stream.offset[first]), f"instruction {first} says line {int(stream.line[first])}, the source map {int(expected[first])}"
        )
