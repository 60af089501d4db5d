"""Binds descriptors to templates: per back end, what runs an instruction, or why nothing does. Binding looks at the descriptor alone, so it
needs no hardware and says the same everywhere."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field

from .. import _core
from . import NEVER_RUN, table_gpu
from .arguments import CONDITIONS, Argument, Temporary, argument, temporaries
from .descriptors import Descriptor
from .table_ascend import ASCEND, Variant

LONGEST_RANK = 8  # of an aclTensor, and of a cuDNN or MIOpen descriptor


@dataclass(frozen=True)
class Call:
    """One call of a library: its name, and its arguments where they are known (Ascend)."""

    name: str
    arguments: tuple[Argument, ...] = ()


@dataclass(frozen=True)
class Template:
    """What runs an instruction: calls one after the other; none for a view that is no work. note: where the result may differ."""

    calls: tuple[Call, ...]
    temporaries: tuple[Temporary, ...] = ()
    note: str = ""

    def __str__(self) -> str:
        return ", ".join(call.name for call in self.calls) or "strides alone"


@dataclass(frozen=True)
class NoTemplate:
    """Nothing runs it: why not."""

    reason: str

    def __str__(self) -> str:
        return f"no template: {self.reason}"


Binding = Template | NoTemplate


# ---- cpu and npu-sim: our own tile code ----------------------------------------------------------------------------------------------

_TILES = {number: name for number, name, *_ in _core.TILE_OPS}
_OPS = {name: (code, cls) for name, code, cls, *_ in _core.OPS}
_COMPOSED = {"MEAN": ("SumX", "Divs")}
_RUNS_WHOLE = {"V": (), "D": ("move",), "N": ("fill",)}  # on memory, outside of tiles; a view is strides alone


def tile_names(op: str) -> tuple[str, ...]:
    """The tile instructions an op is made of; `move` and `fill` run on memory; none: a view, which is strides."""
    code, cls = _OPS[op]
    return _COMPOSED.get(op) or ((_TILES[code],) if code in _TILES else _RUNS_WHOLE[cls])


def tiles(d: Descriptor) -> Binding:
    """The tile instruction that computes it, with an `s` if it takes the immediate."""
    return Template(tuple(Call(name + "s" * (None in d.operands)) for name in tile_names(d.op)))


# ---- Ascend --------------------------------------------------------------------------------------------------------------------------


def ascend(d: Descriptor) -> Binding:
    """The aclnn calls, arguments included."""
    rows = ASCEND[d.op]
    if isinstance(rows, str):
        return NoTemplate(rows)
    ranks = [len(t.shape) for t in d.operands if t is not None] + [len(d.shape)]
    if max(ranks) > LONGEST_RANK:
        return NoTemplate(f"rank {max(ranks)} is above {LONGEST_RANK}")
    matching = [row for row in rows if d.operand_dtype.short in row.dtypes.split()]
    refused = None
    for row in matching:  # the first whose conditions hold
        binding = _variant(d, row)
        if isinstance(binding, Template):
            return binding
        refused = refused or binding
    if refused:
        return refused
    dtypes = " ".join(dict.fromkeys(" ".join(row.dtypes for row in rows if not row.reason).split()))
    return NoTemplate(f"not of {d.operand_dtype.short}, only of {dtypes}")


def _variant(d: Descriptor, row: Variant) -> Binding:
    if row.reason:
        return NoTemplate(f"{d.operand_dtype.short}: {row.reason}")
    for name in row.when:
        holds, otherwise = CONDITIONS[name]
        if not holds(d):
            return NoTemplate(otherwise)
    extra = temporaries(d, row.temporaries)
    lines = row.calls
    if d.cls == "B" and None in d.operands:
        left = d.operands[0] is None
        short = row.left if left else row.right
        if short:
            lines = (short,)
        else:  # a tensor without axes stands for the immediate
            name = "ab"[not left]
            extra += (Temporary(name, d.operand_dtype, ()),)
            lines = (f"aclnnInplaceFillScalar {name} $", *lines)
    calls = []
    for line in lines:
        name, *words = line.split()
        calls.append(Call(name, tuple(argument(d, word, extra) for word in words)))
    return Template(tuple(calls), extra, row.note)


# ---- GPUs: names only, there is no adapter -------------------------------------------------------------------------------------------


def _gpu(table: dict[str, table_gpu.Row]) -> Callable[[Descriptor], Binding]:
    def bind(d: Descriptor) -> Binding:
        row = table[d.op]
        if not row.calls:
            return NoTemplate(row.note)
        if d.operand_dtype.short not in row.dtypes.split():
            return NoTemplate(f"{row.calls[-1]} takes {row.dtypes}, not {d.operand_dtype.short}")
        return Template(tuple(Call(name) for name in row.calls), note=row.note)

    return bind


@dataclass(frozen=True)
class BackEnd:
    """A kind of device and how instructions are bound to it. adapter: whether programs run on it in this version."""

    name: str
    what: str
    bind: Callable[[Descriptor], Binding]
    adapter: bool
    hardware: str = field(default="")  # what was never run on hardware says so


BACK_ENDS = {
    end.name: end
    for end in (
        BackEnd("cpu", "tile code of this package, at the SIMD level of this processor", tiles, True),
        BackEnd("npu-sim", "the same tile code under an NPU's rules", tiles, True),
        BackEnd("ascend", "aclnn operators of CANN through pyACL", ascend, True, NEVER_RUN),
        BackEnd("cuda", "cuBLAS and cuDNN", _gpu(table_gpu.CUDA), False, NEVER_RUN),
        BackEnd("rocm", "hipBLAS and MIOpen", _gpu(table_gpu.ROCM), False, NEVER_RUN),
    )
}


def back_end(device: str) -> BackEnd | None:
    """Of a device's name (`ascend:0`, `npu-sim:910b`) or its own; None if there is none."""
    return BACK_ENDS.get(device.partition(":")[0])


def bind(d: Descriptor, name: str) -> Binding:
    """What runs the instruction on that back end. Total: every descriptor has a template or a reason."""
    return _bind(d, name, repr(d.imms))


@functools.lru_cache(maxsize=4096)
def _bind(d: Descriptor, name: str, imms: str) -> Binding:
    # imms: 0.0 and -0.0 are equal, and are not the same
    return BACK_ENDS[name].bind(d)
