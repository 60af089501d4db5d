"""Frames on a blocking socket: what the debugged process uses, from plain threads."""
from __future__ import annotations

import socket
import threading
import time
import weakref
from typing import Any

from .frames import HEADER, MAX_FRAME, WireError, body_length, decode, encode

_locks: weakref.WeakKeyDictionary[socket.socket, threading.Lock] = weakref.WeakKeyDictionary()
_locks_guard = threading.Lock()


def _lock_of(sock: socket.socket) -> threading.Lock:
    with _locks_guard:
        return _locks.setdefault(sock, threading.Lock())


def write_frame(sock: socket.socket, message: dict[str, Any]) -> None:
    """Sends one frame. Any number of threads may write to the same socket: frames never interleave.

    Raises OSError when the peer is gone, WireError and TypeError (nothing was sent then) for a message that is no frame."""
    frame = encode(message)
    with _lock_of(sock):
        sock.sendall(frame)


def read_frame(sock: socket.socket, limit: int = MAX_FRAME, seconds: float | None = None) -> dict[str, Any] | None:
    """The next frame's object, None at the end of the stream between two frames. One reading thread per socket. limit: bytes that are read
    from a stranger; seconds: that all of it may take, default the socket's own timeout for each piece.

    Raises WireError for a stream that ends inside a frame, an oversized length or a body that is not a JSON object; OSError on a reset, and
    TimeoutError."""
    end = None if seconds is None else time.monotonic() + seconds
    header = _read_exactly(sock, HEADER.size, end)
    if not header:
        return None
    if len(header) < HEADER.size:
        raise WireError("the stream ended inside a frame's header")
    length = body_length(header)
    if length > limit:
        raise WireError(f"a frame of {length} bytes, at most {limit} are read here")
    body = _read_exactly(sock, length, end)
    if len(body) < length:
        raise WireError(f"the stream ended {length - len(body)} bytes before the end of a frame")
    return decode(body)


def _read_exactly(sock: socket.socket, count: int, end: float | None) -> bytes:
    """`count` bytes, fewer only when the stream ends first. Memory grows with what arrives, not with what was announced."""
    parts: list[bytes] = []
    while count:
        if end is not None:
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError("the frame takes too long to arrive")
            sock.settimeout(left)
        part = sock.recv(min(count, 1 << 20))
        if not part:
            break
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
