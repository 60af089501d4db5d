"""`dvm/export`: tensors, programs and memory in other tools' formats."""
from __future__ import annotations

import asyncio
import base64
import os
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .errors import RequestError
from .memory_files import perfetto, torch_snapshot
from .memory_model import Buffer, read_buffers
from .registry import Body, Needs, request
from .tensors import named_tensor, tensor_bytes, write_text

if TYPE_CHECKING:
    from .session import Session

# dtype -> NumPy's code; what has none is written as its bits, in uint16 or uint8
_NPY = {"float16": "<f2", "float32": "<f4", "float64": "<f8", "int8": "|i1", "int16": "<i2", "int32": "<i4", "int64": "<i8", "uint8": "|u1",
        "uint16": "<u2", "uint32": "<u4", "uint64": "<u8", "bool": "|b1", "bfloat16": "<u2",
        "complex64": "<c8", "complex128": "<c16", "float8_e4m3fn": "|u1", "float8_e5m2": "|u1", "hifloat8": "|u1", "int4x2": "|u1"}


def npy(told: Body, data: bytes) -> bytes:
    """NumPy's format, version 1.0 (numpy.lib.format): magic, header padded to a multiple of 64, then the elements in index order."""
    dtype = str(told.get("dtype"))
    if dtype not in _NPY:
        raise RequestError(f"{dtype} has no NumPy type to be written as")
    shape = tuple(int(extent) for extent in told.get("shape") or ())
    header = repr({"descr": _NPY[dtype], "fortran_order": False, "shape": shape}).encode("latin1")
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


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
    told, data = await tensor_bytes(session, await named_tensor(session, arguments))
    return await asyncio.to_thread(lambda: _write(path, npy(told, data)))


async def _export_msbc(session: Session, arguments: Body, path: str) -> int:
    number = arguments.get("program", arguments.get("id"))
    if number is None:
        raise RequestError('this export needs "program": the number of a program (see dvm/programs)')
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
    name = arguments["format"]
    if name not in FORMATS:
        raise RequestError(f'"format" is {name!r}; allowed: {", ".join(FORMATS)}')
    path = os.path.abspath(os.path.expanduser(arguments["path"]))
    return {"path": path, "bytes": await FORMATS[name](session, arguments, path)}
