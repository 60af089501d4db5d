"""The instruction stream as columns: one NumPy array per field, so that a check is one expression for all instructions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .container import walk

Ints = np.ndarray


@dataclass
class Ragged:
    """Rows of different lengths: row i is values[start[i] : start[i] + count[i]]; `row` says which row a value belongs to."""

    values: Ints
    start: Ints
    count: Ints
    row: Ints

    def of(self, index: int) -> tuple[int, ...]:
        """Row `index` as Python numbers."""
        start = int(self.start[index])
        return tuple(self.values[start : start + int(self.count[index])].tolist())

    def first(self, default: int = 0) -> Ints:
        """The first value of every row, `default` for an empty row."""
        return self.at(0, default)

    def at(self, position: int | Ints, default: int = 0) -> Ints:
        """The value at a position of every row, `default` where the row is shorter."""
        out = np.full(self.count.size, default, self.values.dtype)
        has = (self.count > position) & (np.asarray(position) >= 0)
        out[has] = self.values[(self.start + position)[has]]
        return out


@dataclass
class Stream:
    """All instructions of a file. Built from bytes whose extents `walk` has checked; meanings are not checked yet."""

    offset: Ints
    opcode: Ints
    operand_type: Ints
    dtype: Ints
    output_id: Ints
    line: Ints
    dims: Ragged
    operands: Ragged  # value ids as in the file
    attrs: Ragged
    imm_kind: Ragged
    imm_bits: Ragged  # 8 bytes each, as int64
    attr_at: Ints  # offset of the attribute count
    end: int  # offset of the end opcode

    @property
    def size(self) -> int:
        return self.offset.size


def read(buf: bytes) -> Stream:
    """The columns of a file's stream."""
    found, end = walk(buf)
    u8 = np.frombuffer(buf, np.uint8)
    at = np.asarray(found, np.int64)
    rank, count = u8[at + 3].astype(np.int64), u8[at + 1].astype(np.int64)
    tail = at + 4 + 4 * rank  # dtype byte
    operands_at = tail + 5
    attr_at = operands_at + 4 * count
    attr_count = u8[attr_at].astype(np.int64)
    imm_at = attr_at + 1 + 8 * attr_count
    imm_count = u8[imm_at].astype(np.int64)
    line_at = imm_at + 1 + 9 * imm_count
    return Stream(
        offset=at,
        opcode=u8[at].astype(np.int64),
        operand_type=u8[at + 2],
        dtype=u8[tail].astype(np.int64),
        output_id=_gather(u8, tail + 1, 4),
        line=_gather(u8, line_at, 2),
        dims=_ragged(u8, at + 4, rank, 4, 4),
        operands=_ragged(u8, operands_at, count, 4, 4),
        attrs=_ragged(u8, attr_at + 1, attr_count, 8, 8),
        imm_kind=_ragged(u8, imm_at + 1, imm_count, 9, 1),
        imm_bits=_ragged(u8, imm_at + 2, imm_count, 9, 8),
        attr_at=attr_at,
        end=end,
    )


def _gather(u8: np.ndarray, at: Ints, size: int) -> Ints:
    # big-endian unsigned integers of `size` bytes (8: as int64 bits) at any offsets
    block = u8[at[:, None] + np.arange(size)]
    if size == 8:
        return block.reshape(-1, 8).view(">i8").ravel().astype(np.int64)
    out = np.zeros(at.size, np.int64)
    for column in range(size):
        out = (out << 8) | block[:, column]
    return out


def _ragged(u8: np.ndarray, at: Ints, count: Ints, stride: int, size: int) -> Ragged:
    total = int(count.sum())
    start = np.cumsum(count) - count
    row = np.repeat(np.arange(at.size), count)
    where = np.repeat(at, count) + (np.arange(total) - np.repeat(start, count)) * stride
    return Ragged(_gather(u8, where, size), start, count, row)
