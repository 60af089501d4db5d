"""A program's descriptors and what each would run on, as text: "would it run on ...?" without the device at hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import ArgumentError
from ..msbc import text as written  # not from a part of it: tests/python/test_imports.py says why
from . import profiles, unknown
from .ascend import number_of
from .descriptors import Descriptor, descriptors
from .templates import BACK_ENDS, BackEnd, NoTemplate, Template, back_end, bind


def ends(device: str | None) -> list[BackEnd]:
    """The back end of a device's name, all for None. Raises ArgumentError, and DeviceError for a device that cannot be."""
    if device is None:
        return list(BACK_ENDS.values())
    found = back_end(device)
    if found is None:
        raise ArgumentError(f"there is no back end for {device!r}; there are {', '.join(BACK_ENDS)}")
    if device != found.name and found.adapter:
        if found.name == "ascend":
            number_of(device)
        elif device not in profiles():
            raise unknown(device)
    return [found]


def text(code: Any, device: str | None = None) -> str:
    """Each instruction, its descriptor and its binding per back end; then what runs where. Raises ArgumentError for an unknown device."""
    wanted, found, lines = ends(device), list(descriptors(code)), []
    for number, d in enumerate(found):
        lines.append(f"{written.instruction_text(code, number):<72}{written.comment(code.instructions[number])}".rstrip())
        near = f", blocks of {d.block}, {d.local_bytes} bytes near" if d.local_bytes else ""
        lines.append(f"    {'needs':<8} {d.capability}{near}")
        for end in wanted:
            binding = bind(d, end.name)
            note = f"  ({binding.note})" if isinstance(binding, Template) and binding.note else ""
            lines.append(f"    {end.name:<8} {binding}{note}")
    return "\n".join([*lines, *(_summary(end, found) for end in wanted)]) + "\n"


def calls(code: Any, device: str) -> list[tuple[str, int]]:
    """What stands for tile code on a device behind a vendor's library: (line, number of its instruction or -1)."""
    lines = [(f"// {device}: instructions one after the other, each by its template", -1)]
    for number, d in enumerate(descriptors(code)):
        lines += [(f"{number}: {name} ; %{number}", number) for name in str(bind(d, device.partition(":")[0])).split(", ")]
    return lines


def _summary(end: BackEnd, found: Sequence[Descriptor]) -> str:
    missing = [f"%{number + 1} {d.op}" for number, d in enumerate(found) if isinstance(bind(d, end.name), NoTemplate)]
    bound = len(found) - len(missing)
    verdict = "all of it" if not missing else f"{bound} of {len(found)} instructions; not {', '.join(missing)}"
    reservations = [*(["no adapter in this version"] * (not end.adapter)), *([end.hardware] * bool(end.hardware))]
    return f"; {end.name}: {verdict}" + (f" ({'; '.join(reservations)})" if reservations else "")
