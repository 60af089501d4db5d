"""Reading the optional sections. A section is checked to its last byte; counts are compared with the bytes there are before any is used."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np

from . import layout as L
from .code import Input, Place
from .hashes import content_hash
from .stream import Stream


class Reader:
    """A cursor over [at, end) of a buffer; every read is bounded."""

    def __init__(self, buf: bytes, at: int, end: int, section: str) -> None:
        self.buf = buf
        self.at = at
        self.end = end
        self.section = section

    def fail(self, rule: str) -> L.MsbcError:
        return L.MsbcError(self.at, f"{self.section}: {rule}")

    def take(self, size: int) -> int:
        """Claims `size` bytes, returns where they begin."""
        if size > self.end - self.at:
            raise self.fail(f"{size} bytes wanted, {self.end - self.at} left in the section")
        at = self.at
        self.at += size
        return at

    def u8(self) -> int:
        return self.buf[self.take(1)]

    def u32(self) -> int:
        return L.U32.unpack_from(self.buf, self.take(4))[0]

    def i64(self) -> int:
        return L.I64.unpack_from(self.buf, self.take(8))[0]

    def count(self, item: int) -> int:
        """A count of things of at least `item` bytes each."""
        found = self.u32()
        if found * item > self.end - self.at:
            raise self.fail(f"a count of {found} does not fit the {self.end - self.at} bytes left")
        return found

    def u32s(self, count: int) -> np.ndarray:
        at = self.take(4 * count)
        return np.frombuffer(self.buf, ">u4", count, at).astype(np.int64)

    def string(self) -> str:
        size = self.u32()
        if size > L.MAX_STRING:
            raise self.fail(f"a string of {size} bytes; at most {L.MAX_STRING}")
        at = self.take(size)
        try:
            return self.buf[at : at + size].decode("utf-8")
        except UnicodeDecodeError as error:
            raise L.MsbcError(at + error.start, f"{self.section}: not UTF-8") from None

    def tensor(self, strided: bool) -> tuple[int, tuple[int, ...], tuple[int, ...] | None]:
        """dtype, shape and strides of a tensor, its size bounded."""
        dtype, rank = self.u8(), self.u8()
        if dtype not in L.ITEM_SIZE or not 1 <= dtype <= L.MAX_DTYPE:
            raise self.fail(f"dtype {dtype} is unknown")
        if rank > L.MAX_RANK:
            raise self.fail(f"rank {rank} is above {L.MAX_RANK}")
        has_strides = self.u8() if strided else 0
        if has_strides > 1:
            raise self.fail("a flag is 0 or 1")
        shape = tuple(self.u32s(rank).tolist())
        strides = tuple(self.i64() for _ in range(rank)) if has_strides else None
        size = L.ITEM_SIZE[dtype]
        for dim in shape:
            size *= max(dim, 1)
            if size > L.MAX_TENSOR_BYTES:
                raise self.fail(f"a tensor of shape {list(shape)} has more than {L.MAX_TENSOR_BYTES} bytes")
        if strides is not None and any(abs(stride) > L.MAX_TENSOR_BYTES for stride in strides):
            raise self.fail("a stride beyond the largest tensor")
        return dtype, shape, strides

    def done(self) -> None:
        if self.at != self.end:
            raise self.fail(f"{self.end - self.at} bytes left over")


@dataclass
class Symbols:
    """What only people and callers need: names, inputs, outputs (value ids as in the file)."""

    name: str = ""
    inputs: list[Input] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    value_names: dict[int, str] = field(default_factory=dict)  # by output id


def symbols(buf: bytes, extent: tuple[int, int], stream: Stream) -> Symbols:
    r = Reader(buf, *extent, "symbols")
    found = Symbols(r.string())
    known = set(stream.output_id.tolist())
    for _ in range(r.count(11)):
        dtype, shape, strides = r.tensor(strided=True)
        found.inputs.append(Input(dtype, shape, strides, r.string(), r.string()))
    for _ in range(r.count(4)):
        value = r.u32()
        if value not in known and not L.INPUT <= value < L.INPUT + len(found.inputs):
            raise r.fail(f"output {value:#x} is no value of the program")
        found.outputs.append(value)
    for _ in range(r.count(8)):
        value = r.u32()
        if value not in known:
            raise r.fail(f"a name for {value:#x}, which is no result")
        found.value_names[value] = r.string()
    r.done()
    return found


def source_map(buf: bytes, extent: tuple[int, int], stream: Stream) -> tuple[list[Place], np.ndarray]:
    """(places, number of each instruction's place, -1 for none)."""
    r = Reader(buf, *extent, "source map")
    strings = [r.string() for _ in range(r.count(4))]
    places = []
    for _ in range(r.count(L.PLACE.size)):
        at = r.take(L.PLACE.size)
        file, function, line, end_line, column, end_column, backward = L.PLACE.unpack_from(buf, at)
        if file >= len(strings) or function >= len(strings) or backward > 1:
            raise L.MsbcError(at, "source map: a string number or flag is out of range")
        if max(line, end_line, column, end_column) >= 1 << 31:
            raise L.MsbcError(at, "source map: a line or column is out of range")
        places.append(Place(strings[file], line, end_line, column, end_column, strings[function], bool(backward)))
    if r.count(4) != stream.size:
        raise r.fail(f"places for another number of instructions than the stream's {stream.size}")
    numbers = r.u32s(stream.size)
    r.done()
    bad = (numbers >= len(places)) & (numbers != L.NO_PLACE)
    if bad.any():
        raise r.fail(f"place {int(numbers[bad][0])} of {len(places)}")
    return places, np.where(numbers == L.NO_PLACE, -1, numbers)


def index(buf: bytes, extent: tuple[int, int], stream: Stream) -> None:
    r = Reader(buf, *extent, "index")
    if r.count(4) != stream.size:
        raise r.fail(f"offsets for another number of instructions than the stream's {stream.size}")
    offsets = r.u32s(stream.size)
    r.done()
    if not np.array_equal(offsets, stream.offset):
        first = int(np.flatnonzero(offsets != stream.offset)[0])
        raise L.MsbcError(
            extent[0] + 4 + 4 * first, f"index: instruction {first} is at {int(stream.offset[first]):#x}, not {int(offsets[first]):#x}"
        )


def hashes(buf: bytes, extent: tuple[int, int], stream: Stream) -> None:
    r = Reader(buf, *extent, "hashes")
    if r.count(L.HASH_SIZE) != stream.size:
        raise r.fail(f"hashes for another number of instructions than the stream's {stream.size}")
    at = r.take(L.HASH_SIZE * stream.size)
    r.done()
    starts = stream.offset.tolist()
    for number, (start, end) in enumerate(itertools.pairwise([*starts, stream.end])):
        if content_hash(buf[start:end]) != buf[at : at + L.HASH_SIZE]:
            raise L.MsbcError(start, f"instruction {number} does not match its SHA-256")
        at += L.HASH_SIZE


def constants(buf: bytes, extent: tuple[int, int], inputs: list[Input]) -> dict[int, np.ndarray]:
    r = Reader(buf, *extent, "constants")
    found: dict[int, np.ndarray] = {}
    for _ in range(r.count(6)):
        number = r.u32()
        dtype, shape, _ = r.tensor(strided=False)
        if number >= len(inputs) or number in found:
            raise r.fail(f"input {number} is not there or has its data already")
        if inputs[number].dtype != dtype or inputs[number].shape != shape:
            raise r.fail(f"the data of input {number} has another dtype or shape than the input")
        size = int(np.prod(shape, dtype=np.int64)) if shape else 1
        at = r.take(size * L.ITEM_SIZE[dtype])
        native = np.dtype(L.NUMPY[dtype])
        array = np.frombuffer(buf, native.newbyteorder(">"), size, at).astype(native).reshape(shape)
        if dtype == 5:
            array = (array.view(np.uint8) != 0).view(np.bool_)
        array.flags.writeable = False
        found[number] = array
    r.done()
    return found
