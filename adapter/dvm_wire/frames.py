"""Frames as bytes: what is sent, what is accepted, and the limits on both."""
from __future__ import annotations

import json
import math
import struct
from typing import Any

MAX_FRAME = 64 << 20  # bytes of JSON in one frame
MOST_KEPT = 64  # snapshots of one watch that a program keeps
HEADER = struct.Struct(">I")

_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class WireError(Exception):
    """What arrived, or what was to be sent, is not a frame. The connection cannot be used any further."""


def number(value: Any) -> float | int:
    """A number as it was before `encode`: "NaN", "Infinity" and "-Infinity" become floats again. Raises WireError for anything else."""
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, str) and value in _NOT_FINITE:
        return _NOT_FINITE[value]
    raise WireError(f"not a number: {value!r}")


def plain(value: Any) -> Any:
    """`value` with what JSON cannot say replaced: NaN and infinities by their names, NumPy scalars by Python numbers."""
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (str, int)):
        return value
    return plain(_scalar(value))


def _scalar(value: Any) -> Any:
    # NumPy scalars are no subclass of int or float (float64 aside); item() is their way back to Python. Arrays have no single item.
    item = getattr(value, "item", None)
    if item is None or getattr(value, "shape", ()) != ():
        raise TypeError(f"{type(value).__name__} cannot be sent over the wire")
    return item()


def dump(message: dict[str, Any]) -> bytes:
    """`message` as strict JSON, without a header; also what the adapter sends to the editor."""
    try:
        # The common case has only finite numbers: the C encoder alone, no walk in Python.
        text = json.dumps(message, separators=(",", ":"), allow_nan=False, default=_scalar)
    except ValueError:
        text = json.dumps(plain(message), separators=(",", ":"), allow_nan=False)
    return text.encode("ascii")


def encode(message: dict[str, Any]) -> bytes:
    """One frame, header included. Raises WireError above MAX_FRAME, TypeError for a value JSON has no word for."""
    body = dump(message)
    if len(body) > MAX_FRAME:
        raise WireError(f"a frame of {len(body)} bytes is above the limit of {MAX_FRAME}: ask for a smaller part")
    return HEADER.pack(len(body)) + body


def body_length(header: bytes) -> int:
    """The length a header announces. Raises WireError when it is zero or above MAX_FRAME: nothing is allocated for it."""
    (length,) = HEADER.unpack(header)
    if not 0 < length <= MAX_FRAME:
        raise WireError(f"frame length {length} is not in 1..{MAX_FRAME}")
    return length


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def decode(body: bytes) -> dict[str, Any]:
    """The object in a frame's body. Raises WireError for anything that is not one JSON object in UTF-8."""
    try:
        message = json.loads(body.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise WireError(f"a frame of {len(body)} bytes is not JSON: {error}") from None
    if not isinstance(message, dict):
        raise WireError(f"a frame holds a JSON {type(message).__name__}, not an object")
    return message
