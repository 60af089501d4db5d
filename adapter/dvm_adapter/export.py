"""`dvm/export`: tensors, programs and memory in other tools' formats."""
from __future__ import annotations

import asyncio
import base64
import json
import os
import pickle
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .errors import RequestError
from .memory_model import Buffer, read_buffers
from .registry import Body, Needs, request
from .tensors import _evaluated, reference_of, tensor_bytes, write_text

if TYPE_CHECKING:
    from .session import Session

# dtype -> NumPy's code; bfloat16 has none, its bits are written as uint16
_NPY = {"float16": "<f2", "float32": "<f4", "float64": "<f8", "int8": "|i1", "int16": "<i2", "int32": "<i4", "int64": "<i8", "uint8": "|u1",
        "uint16": "<u2", "uint32": "<u4", "uint64": "<u8", "bool": "|b1", "bfloat16": "<u2"}


def npy(told: Body, data: bytes) -> bytes:
    """NumPy's format, version 1.0 (numpy.lib.format): magic, header padded to a multiple of 64, then the elements in index order."""
    dtype = str(told.get("dtype"))
    if dtype not in _NPY:
        raise RequestError(f"{dtype} has no NumPy type to be written as")
    shape = tuple(int(extent) for extent in told.get("shape") or ())
    header = repr({"descr": _NPY[dtype], "fortran_order": False, "shape": shape}).encode("latin1")
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def perfetto(buffers: list[Buffer]) -> bytes:
    """Chrome trace JSON: an async span per buffer, and a counter. One instruction is one microsecond, counted from the first."""
    start = min((buffer.born for buffer in buffers), default=0)
    end = max((max(buffer.born, buffer.freed or 0) for buffer in buffers), default=0) + 1
    events: list[Body] = [{"ph": "M", "pid": 1, "tid": 1, "name": "process_name", "args": {"name": "tensor memory"}}]
    change: dict[int, int] = {}
    for buffer in buffers:
        freed = end if buffer.freed is None else buffer.freed
        common = {"cat": buffer.cls, "id": buffer.id, "name": buffer.name, "pid": 1, "tid": 1}
        about = {"bytes": buffer.bytes, "shape": buffer.shape, "address": hex(buffer.address), "reuses": buffer.reuses,
                 "made at": buffer.place}
        events.append({"ph": "b", "ts": buffer.born - start, **common, "args": about})
        events.append({"ph": "e", "ts": freed - start, **common})
        change[buffer.born] = change.get(buffer.born, 0) + buffer.bytes
        if buffer.freed is not None:
            change[buffer.freed] = change.get(buffer.freed, 0) - buffer.bytes
    live = 0
    for time in sorted(change):
        live += change[time]
        events.append({"ph": "C", "ts": time - start, "pid": 1, "tid": 1, "name": "bytes alive", "args": {"bytes": live}})
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}, separators=(",", ":")).encode()


def torch_snapshot(buffers: list[Buffer]) -> bytes:
    """What pytorch.org/memory_viz opens: plain containers in pickle protocol 4 (the viewer knows 2 to 4 and no classes)."""

    def frames(buffer: Buffer) -> list[Body]:
        file, _, number = buffer.place.rpartition(":")
        name = f"{buffer.cls} {buffer.name} {buffer.shape}".rstrip()
        return [{"filename": file or "?", "line": int(number) if number.isdigit() else 0, "name": name}]

    trace: list[tuple[int, int, Body]] = []
    for buffer in buffers:
        common = {"addr": buffer.address, "size": buffer.bytes, "stream": 0, "frames": frames(buffer)}
        trace.append((buffer.born, 1, {"action": "alloc", **common, "time_us": buffer.born}))
        if buffer.freed is not None:
            # Frees come first within an instant: the address may be handed out again at once.
            trace.append((buffer.freed, 0, {"action": "free_requested", **common, "time_us": buffer.freed}))
            trace.append((buffer.freed, 0, {"action": "free_completed", **common, "time_us": buffer.freed}))
    trace.sort(key=lambda entry: entry[:2])
    segments = []
    for buffer in buffers:
        if buffer.freed is None:
            block = {"address": buffer.address, "size": buffer.bytes, "requested_size": buffer.bytes, "state": "active_allocated",
                     "frames": frames(buffer)}
            segments.append({
                "device": 0, "address": buffer.address, "total_size": buffer.bytes, "allocated_size": buffer.bytes,
                "active_size": buffer.bytes, "requested_size": buffer.bytes, "stream": 0,
                "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False,
                "frames": frames(buffer), "blocks": [block]})
    return pickle.dumps({"segments": segments, "device_traces": [[entry for _, _, entry in trace]], "allocator_settings": {}}, protocol=4)


def _write(path: str, data: bytes) -> int:
    try:
        with open(path, "wb") as file:
            file.write(data)
    except OSError as error:
        raise RequestError(f"cannot write {path}: {error.strerror}", show=True) from None
    return len(data)


async def _memory(session: Session, arguments: Body) -> Body:
    steps = arguments.get("steps")
    return await session.tensors.ask("memory", **({"steps": steps} if steps else {}))


async def _export_npy(session: Session, arguments: Body, path: str) -> int:
    reference = await _evaluated(session, arguments) if arguments.get("expression") else reference_of(session, arguments)
    told, data = await tensor_bytes(session, reference)
    return await asyncio.to_thread(lambda: _write(path, npy(told, data)))


async def _export_msbc(session: Session, arguments: Body, path: str) -> int:
    number = arguments.get("program", arguments.get("id"))
    if not isinstance(number, int):
        raise RequestError(f'"program" is {number!r}; it must be the number of a program (see dvm/programs)')
    told = await session.tensors.ask("msbc", program=number)
    return await asyncio.to_thread(_write, path, base64.b64decode(str(told.get("data") or "")))


def _of_memory(convert: Callable[[list[Buffer]], bytes]) -> Callable[[Session, Body, str], Any]:
    async def export(session: Session, arguments: Body, path: str) -> int:
        body = await _memory(session, arguments)
        return await asyncio.to_thread(lambda: _write(path, convert(read_buffers(body))))

    return export


async def _export_html(session: Session, arguments: Body, path: str) -> int:
    return await asyncio.to_thread(write_text, path, await _memory(session, arguments), str(arguments.get("title") or ""))


FORMATS: dict[str, Callable[[Session, Body, str], Any]] = {
    "npy": _export_npy, "msbc": _export_msbc, "perfetto": _of_memory(perfetto), "torch-snapshot": _of_memory(torch_snapshot),
    "html": _export_html,
}


@request("dvm/export", needs=Needs.AGENT)
async def export(session: Session, arguments: Body) -> Body:
    """Writes `format` to `path` and answers with the number of bytes."""
    name, path = arguments.get("format"), arguments.get("path")
    if name not in FORMATS:
        raise RequestError(f'"format" is {name!r}; allowed: {", ".join(FORMATS)}')
    if not isinstance(path, str) or not path:
        raise RequestError(f'"path" is {path!r}; it must be the file to write')
    path = os.path.abspath(os.path.expanduser(path))
    return {"path": path, "bytes": await FORMATS[name](session, arguments, path)}
