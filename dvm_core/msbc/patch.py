"""New shapes written into a program in place: nothing is rebuilt."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import layout as L
from .container import find_section, walk

_BYTES = np.arange(4)


def patch_shapes(buf: bytearray | memoryview, patch: Mapping[int, Sequence[int]] | tuple[Any, Any, Any]) -> int:
    """Writes dimensions into the instructions of `buf` and returns how many were written.

    patch: {instruction: whole new shape}, or three arrays (instruction index, dimension index, value), which is one vectorised write.
    Needs no decoding if the file has an index section. Nothing is written if anything is refused. Raises MsbcError for an instruction or
    dimension that is not there, a value outside u32, or a rank that differs; TypeError if `buf` cannot be written.
    """
    view = np.frombuffer(buf, np.uint8)
    if not view.flags.writeable:
        raise TypeError("patch_shapes writes in place: pass a bytearray or a writable memoryview, not bytes")
    offsets, end = _offsets(buf, view)
    if isinstance(patch, Mapping):
        instructions, dims, values = _flatten(patch, view, offsets, end)
    else:
        instructions, dims, values = (np.asarray(part) for part in patch)
        if not instructions.shape == dims.shape == values.shape or instructions.ndim != 1:
            raise L.MsbcError(0, "instruction, dimension and value arrays must be one-dimensional and equally long")
        if not instructions.size:
            return 0
        if not all(np.issubdtype(part.dtype, np.integer) for part in (instructions, dims, values)):
            raise L.MsbcError(0, "instruction, dimension and value arrays must hold integers")
    if not instructions.size:
        return 0
    _check_numbers(instructions, offsets)
    if values.min() < 0 or values.max() > 0xFFFF_FFFF:
        raise L.MsbcError(0, "a dimension must fit 32 unsigned bits")
    at = offsets[instructions].astype(np.int64)
    if at.min() < L.HEADER_SIZE or at.max() + 4 > end:
        raise L.MsbcError(int(at.max()), "the index section points outside the stream")
    bad = (dims < 0) | (dims >= view[at + 3])
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        raise L.MsbcError(
            int(at[first]), f"instruction {int(instructions[first])} has no dimension {int(dims[first])} (rank {view[at[first] + 3]})"
        )
    at += 4 * dims + 4
    if at.max() + 4 > end:
        raise L.MsbcError(int(at.max()), "the index section points outside the stream")
    view[at[:, None] + _BYTES] = values.astype(">u4").view(np.uint8).reshape(-1, 4)
    return int(values.size)


def _offsets(buf: Any, view: np.ndarray) -> tuple[np.ndarray, int]:
    # (offset of each instruction, end of the stream); from the index section, else by walking the stream
    section = find_section(buf, L.INDEX)
    if section is None:
        found, end = walk(bytes(buf))
        return np.asarray(found, np.int64), end
    start, length, first_section = section
    if length < 4 or (length - 4) % 4 or int.from_bytes(buf[start : start + 4], "big") != (length - 4) // 4:
        raise L.MsbcError(start, "the index section's count does not fit its length")
    return view[start + 4 : start + length].view(">u4"), first_section - 1


def _flatten(
    patch: Mapping[int, Sequence[int]], view: np.ndarray, offsets: np.ndarray, end: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    # The same as three columns: instruction, dimension, value.
    try:
        keys = np.fromiter(map(operator.index, patch), np.int64, len(patch))
        ranks = np.fromiter(map(len, patch.values()), np.int64, len(patch))
        values = np.fromiter(map(operator.index, itertools.chain.from_iterable(patch.values())), np.int64, int(ranks.sum()))
    except (TypeError, OverflowError) as error:
        raise L.MsbcError(0, f"a patch maps instruction numbers to shapes of whole numbers below 2^32: {error}") from None
    if not keys.size:
        return keys, keys, keys
    _check_numbers(keys, offsets)
    at = offsets[keys].astype(np.int64)
    if at.min() < L.HEADER_SIZE or at.max() + 4 > end:
        raise L.MsbcError(int(at.max()), "the index section points outside the stream")
    wrong = np.flatnonzero(view[at + 3] != ranks)
    if wrong.size:
        first = int(wrong[0])
        raise L.MsbcError(
            int(at[first]),
            f"instruction {int(keys[first])} has rank {view[at[first] + 3]}, the new shape {list(patch[int(keys[first])])} has rank "
            f"{int(ranks[first])}: only dimensions can be patched",
        )
    starts = np.cumsum(ranks) - ranks
    return np.repeat(keys, ranks), np.arange(values.size) - np.repeat(starts, ranks), values


def _check_numbers(instructions: np.ndarray, offsets: np.ndarray) -> None:
    if instructions.min() < 0 or instructions.max() >= offsets.size:
        wrong = int(instructions.min()) if instructions.min() < 0 else int(instructions.max())
        raise L.MsbcError(0, f"instruction {wrong} of {offsets.size} instructions")
