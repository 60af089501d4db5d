"""What a file says, as plain data for JSON: what the editor's viewer shows."""

from __future__ import annotations

import hashlib
import itertools
from typing import Any

from .. import _core
from ..dtypes import BY_CODE
from ..errors import Error, native
from . import layout as L
from .container import sections
from .hashes import content_hash
from .program import LoadedProgram
from .text import text_of, value_name
from .verify import check


def facts(data: bytes, most: int | None = None) -> dict[str, Any]:
    """Name, sizes, SHA-256, sections, inputs, outputs, areas, and the instructions: the first `most` of them.

    Lines count from 1, 0 where unknown; an instruction's area is -1 where it has none (a view), its SHA-256 leaves dimensions and line out.
    `areasRefused` says why there are no areas, else "". Raises MsbcError for bytes that are no valid program.
    """
    checked = check(data)
    program, stream = LoadedProgram(checked), checked.stream
    ends = [*program.offsets, stream.end][1:]
    hashes = [content_hash(data[start:end]) for start, end in zip(program.offsets, ends, strict=True)]
    areas, refused = _areas(program)
    area_of = {i: area["index"] for area in areas for i in area["instructions"]}
    extents = sections(data, stream.end)
    shown = range(len(program) if most is None else min(most, len(program)))
    code = program.code
    return {
        "version": L.VERSION,
        "name": program.name,
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "functionSha256": hashlib.sha256(b"".join(hashes)).hexdigest(),
        "sections": [{"name": L.SECTION_NAMES.get(kind, str(kind)), "bytes": end - start} for kind, (start, end) in extents.items()],
        "inputs": [
            {
                "value": value_name(code, number),
                "name": item.name,
                "class": item.cls,
                "constant": number in program.constants,
                "strides": None if item.strides is None else list(item.strides),
                **_type(item.dtype, item.shape),
            }
            for number, item in enumerate(program.inputs or ())
        ],
        "inputCount": program.input_count,
        "outputs": [value_name(code, value) for value in program.outputs],
        "areas": areas,
        "areasRefused": refused,
        "instructionCount": len(program),
        "instructions": [
            {
                "value": value_name(code, code_value),
                "op": L.NAMES[item.opcode],
                "text": text_of(item, number, program.input_count).partition(" = ")[2].rpartition(" ")[0],
                "name": item.name,
                "area": area_of.get(number, -1),
                "offset": offset,
                "bytes": end - offset,
                "sha256": hashes[number].hex(),
                **_type(item.dtype, item.shape),
                **_place(item.place),
            }
            for number, code_value, item, offset, end in zip(
                shown, itertools.count(program.input_count), code.instructions, program.offsets, ends, strict=False
            )
        ],
    }


def _type(dtype: int, shape: tuple[int, ...]) -> dict[str, Any]:
    return {"dtype": BY_CODE[dtype].name, "shape": list(shape)}


def _place(place: Any) -> dict[str, Any]:
    if place is None:
        return {"file": "", "line": 0, "function": "", "backward": False}
    return {"file": place.file, "line": place.line, "function": place.function, "backward": place.backward}


def _areas(program: LoadedProgram) -> tuple[list[dict[str, Any]], str]:
    """(areas as the cpu would fuse them, why there are none). Nothing runs: the inputs are given an address that is not read."""
    if program.inputs is None:
        return [], "the file does not describe its inputs"
    graph = _core.Graph(program.name or "msbc")
    try:
        with native():
            inputs = [graph.input(_NOWHERE, item.shape, item.dtype, item.strides) for item in program.inputs]
            values = program.record(graph, inputs)
            areas = _core.planned_areas(graph, [values[value] for value in program.outputs])
    except Error as error:
        return [], str(error)
    return [
        {
            "index": area.index,
            "kind": area.kind,
            "instructions": list(area.instructions),
            "tiles": area.tiles,
            "tileRows": area.tile_rows,
            "tileCols": area.tile_cols,
            "reason": area.cut_reason,
        }
        for area in areas
    ], ""


_NOWHERE = 1 << 12  # aligned for every dtype
