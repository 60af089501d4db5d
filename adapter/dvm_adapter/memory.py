"""Tensor bytes for a hex editor."""
from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from .errors import RequestError
from .registry import Body, Needs, request
from .variables import Tensor

if TYPE_CHECKING:
    from .session import Session

LARGEST_READ = 8 << 20  # an answer may be short; the client asks for the rest


def memory_tensor(session: Session, arguments: Body) -> Tensor:
    """The tensor behind a request's `memoryReference`. Raises RequestError."""
    try:
        reference = int(str(arguments.get("memoryReference")), 0)
    except ValueError:
        raise RequestError(f"{arguments.get('memoryReference')!r} is not a memory reference of this session") from None
    return session.references.get(reference, Tensor)


@request("readMemory", needs=Needs.STOPPED, supportsReadMemoryRequest=True)
async def read_memory(session: Session, arguments: Body) -> Body:
    """Bytes of a tensor in index order (contiguous, whatever its strides). Past its end: `unreadableBytes`."""
    tensor = memory_tensor(session, arguments)
    offset = int(arguments.get("offset") or 0)
    count = int(arguments.get("count") or 0)
    if count < 0:
        raise RequestError(f"count is {count}; it must not be negative")
    size = tensor.told.get("bytes")
    if not count or offset < 0 or (isinstance(size, int) and offset >= size):
        return {"address": hex(max(offset, 0)), "unreadableBytes": count}
    wanted = min(count, LARGEST_READ)
    told = await session.tensors.ask("evaluateMemory", ref=tensor.ref, offset=offset, count=wanted)
    data = told.get("data") or ""
    body: Body = {"address": hex(offset), "data": data}
    got = len(base64.b64decode(data))
    # Only what lies past the end is unreadable; what was cut at LARGEST_READ can be asked for again.
    if got < wanted:
        body["unreadableBytes"] = count - got
    return body
