"""What an instruction and a function are, as SHA-256: whatever may be patched or moved (dimensions, lines) is left out."""

from __future__ import annotations

import hashlib
from typing import Any

from .code import Code


def content_hash(instruction: bytes | memoryview) -> bytes:
    """SHA-256 of an encoded instruction, apart from its dimensions and its line: those change without making it another one."""
    end_of_dims = 4 + 4 * instruction[3]
    return hashlib.sha256(bytes(instruction[:4]) + bytes(instruction[end_of_dims:-2])).digest()


def instruction_hashes(program: Any) -> list[bytes]:
    """The hash of every instruction, 32 bytes each.

    program: the bytes of a file, or what `msbc.dump` takes. Raises MsbcError for bytes that are no valid program.
    """
    if isinstance(program, (bytes, bytearray, memoryview)):
        from .verify import check

        stream = check(program).stream
        ends = [*stream.offset.tolist(), stream.end]
        data = bytes(program)
        return [content_hash(data[start:end]) for start, end in zip(ends[:-1], ends[1:], strict=True)]
    from .write import encode

    return [content_hash(data) for data in encode(Code.of(program))[0]]


def function_hash(program: Any) -> bytes:
    """SHA-256 of a function: of its instructions' hashes in order. Two programs with the same one do the same, whatever their shapes."""
    return hashlib.sha256(b"".join(instruction_hashes(program))).digest()
