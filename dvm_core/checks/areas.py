"""From the facts about an area's tile code to findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from .. import _core
from ..devices import chips
from ..dtypes import BY_CODE
from .names import Names
from .report import Finding

_SHOWN = 6  # lines of what an area that does not fit holds


def findings_of(program: int, number: int, facts: dict[str, Any], names: Names) -> Iterator[Finding]:
    """What is wrong with an area's code: missing waits, values in one place, results over operands, results nothing stores."""

    def finding(kind: str, text: str, *instructions: int) -> Finding:
        return Finding(kind, text, tuple(names.place(i) for i in instructions), program, number)

    for race in facts["races"]:
        first, second = (names.tile(facts, race[key]) for key in ("first", "second"))
        when = "in the next tile, " if race["tiles_apart"] else ""
        from_, to = race["bytes"]
        text = f"{when}{second} does not wait for {first}: {race['kind']} of bytes {from_:#x} to {to:#x} of the UB"
        yield finding("race", text, *reversed(race["instructions"]))
    for made, over, reader, (from_, to) in facts["overwrites"]:
        by = names.tile(facts, over) if over >= 0 else "nothing"
        place = f"bytes {from_:#x} to {to:#x} of the UB"
        text = f"{names.tile(facts, reader)} reads what {names.tile(facts, made)} made, but {place} were written by {by}"
        owners = [facts["uses"][use]["instruction"] for use in (reader, over, made) if use >= 0]
        yield finding("overwritten", text, *owners)
    for use, (from_, to) in facts["aliases"]:
        text = f"{names.tile(facts, use)} writes over bytes {from_:#x} to {to:#x} of its own operand before it has read them"
        yield finding("alias", text, facts["uses"][use]["instruction"])
    for value in facts["unstored"]:
        i = value - names.inputs
        yield finding("unwritten", f"no instruction of the area stores {names.value(value)}, the result of {names.tensor(i)}", i)


def cut_of(program: int, overflow: dict[str, Any], areas: int, names: Names) -> Finding:
    """An area that was cut since it does not fit, by what it would hold."""
    sizes: Counter[str] = Counter()
    values: Counter[str] = Counter()
    places: dict[str, tuple[str, int]] = {}
    for buffer in overflow["held"]:
        what = f"{'operands of ' if buffer['loaded'] else ''}{names.tensor(buffer['instruction'])}"
        sizes[what] += buffer["bytes"][1] - buffer["bytes"][0]
        values[what] += 1
        places[what] = names.place(buffer["instruction"])
    shown = sizes.most_common(_SHOWN)
    held = [f"{size:,} for {what}" + (f", {values[what]} times" if values[what] > 1 else "") for what, size in shown]
    if len(sizes) > _SHOWN:
        held.append(f"{sum(sizes.values()) - sum(size for _, size in shown):,} for {len(sizes) - _SHOWN} more")
    rows, cols = overflow["tile"]
    text = (
        f"{len(overflow['instructions'])} ops need {overflow['bytes']:,} of {overflow['limit']:,} bytes of UB even in tiles of "
        f"{rows} x {cols}, so the program runs in {areas} areas with values in memory between them. At its fullest the UB would hold "
        f"{'; '.join(held)}. Values that are made early and read late take the room: use them sooner, make them anew, or store them"
    )
    return Finding("cut", text, (places[shown[0][0]],) if shown else (), program)


def casts_of(program: int, instructions: Any, names: Names, dtype_of: Any) -> Iterator[Finding]:
    """Casts that lose something on the chip, since they go through another dtype there."""
    for item in instructions:
        if item.name != "CAST":
            continue
        source = dtype_of(item.operands[0])
        lost = _LOST.get((BY_CODE[source].name, BY_CODE[item.dtype].name))
        if lost:
            path = [BY_CODE[code].name for code in _core.cast_route("npu-sim:910b:faithful", source, item.dtype)]
            way = f"from {BY_CODE[source].name} to {path[-1]} goes by {', '.join(path[:-1])}"
            text = f"{names.tensor(item.index)} {way} on the chip: {lost}"
            yield Finding("cast", text, (names.place(item.index),), program)


def lacking_of(program: int, arch: str, instructions: Any, names: Names, dtype_of: Any) -> Iterator[Finding]:
    """What of a captured program DVM has no instruction for on a chip, op by op: there the vendor's own operators would run it."""
    found: dict[tuple[str, str], list[int]] = {}
    for item in instructions:
        tensors = [operand for operand in item.operands if operand >= 0]
        code = dtype_of(tensors[1 if item.name == "SELECT" and len(tensors) > 1 else 0]) if tensors else item.dtype
        dtype = BY_CODE[code].name
        missing = next((BY_CODE[c].name for c in (code, item.dtype) if BY_CODE[c].name not in chips.DTYPES), dtype)
        if missing != dtype or not chips.has_instruction(arch, item.name, missing):
            found.setdefault((item.name, missing), []).append(item.index)
    for (op, dtype), where in found.items():
        more = f", {len(where)} times" if len(where) > 1 else ""
        text = f"{op} of {dtype}{more}: DVM has none for it on {arch}; on the chip the vendor's operator runs it"
        yield Finding("lacks", text, tuple(names.place(i) for i in where), program)


_SMALL = "what is below 3e-8 becomes False; compare with 0 (not_equal) to keep it"
_TWICE = "it is rounded twice"
_LOST = {
    ("float32", "bool"): _SMALL,
    ("bfloat16", "bool"): _SMALL,
    ("int64", "float16"): _TWICE,
    ("int64", "bfloat16"): _TWICE,
    ("int32", "bfloat16"): _TWICE,
}


def order_of(spread: dict[str, Any], file: str, line: int) -> Finding:
    """A sum whose value depends on the order its parts arrive in, as atomic additions do."""
    dtype = BY_CODE[spread["dtype"]]
    low, high = spread["lowest"], spread["highest"]
    apart = (high - low) / max(abs(low), abs(high))
    text = (
        f"{spread['op']} of {dtype}{list(spread['shape'])} is added from {spread['parts']} parts; over {spread['orders']} orders of "
        f"arrival {spread['differing']:,} of {spread['elements']:,} elements differ, most of all element {spread['worst']}: {low:.9g} to "
        f"{high:.9g} ({apart:.1e} of it). A chip adds them atomically, in any order, unless set_deterministic() is called"
    )
    return Finding("order", text, ((file, line),))
