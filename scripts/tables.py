"""Writes the tables of docs/bytecode.md, devices.md and kernels.md, and the editor's, from the lists the code goes by; --check: whether
they are current.

    .venv/bin/python scripts/tables.py [--check]
"""
from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dvm_core import _core, graphtext
from dvm_core.devices import chips, doctor, rules
from dvm_core.frontends import builder_comm, builder_custom, builder_grouped, builder_io, builder_ops, builder_shapes

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
HOVERS = ROOT / "extension" / "src" / "programs" / "instructions.json"  # what the editor says of an instruction in a listing
LAYOUTS = {"unary": "a", "binary": "a, b", "select": "a, b, c", "matmul": "product", "join": "a, join",
           "hook": "a, hook", "random": "instruction", "strip": "instructions, strip"}


def _plain(meaning: str) -> str:
    return re.sub(r"\|(\w+)\|", r"abs \1", re.sub(r"\s{2,}", "; ", meaning)).replace("|", "\\|")


def _markdown(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def opcodes() -> str:
    """Tensor instructions: native/ops.def."""
    rows = [(f"`{code:#04x}`", name, cls, "any" if arity < 0 else str(arity), rule, _plain(meaning))
            for name, code, cls, arity, rule, meaning in _core.OPS]
    return _markdown(("opcode", "name", "class", "operands", "result dtype", "meaning; attributes, immediates"), rows)


def tiles() -> str:
    """Tile instructions: native/isa.h."""
    rows = [(f"`{number:#04x}`", name, text, LAYOUTS[layout], _plain(meaning)) for number, name, text, layout, meaning in _core.TILE_OPS]
    return _markdown(("id", "name", "in listings", "operands", "meaning"), rows)


_COSTS = {"U": "one operation an element", "B": "one operation an element", "T": "one operation an element",
          "R": "each element of the operand is read once", "M": "a multiply-add for each element of the result and each step of the sum",
          "V": "none: the view is strides", "D": "each element is read and written once", "N": "one write an element"}


def _words(meaning: str) -> str:
    return re.sub(r"\s{2,}", "; ", meaning)


def hovers() -> str:
    """The same lists for the editor, as JSON: by tensor instruction, by tile instruction as listings spell it, by DVM's dump name."""
    tensor = {name: {"name": name, "code": f"{code:#04x}", "operands": "any" if arity < 0 else str(arity), "dtype": rule,
                     "meaning": _words(meaning), "cost": _COSTS[cls]} for name, code, cls, arity, rule, meaning in _core.OPS}
    tile = {text: {"name": text, "code": f"{number:#04x}", "operands": LAYOUTS[layout], "meaning": _words(meaning)}
            for number, _, text, layout, meaning in _core.TILE_OPS}
    graph: dict[str, list[str]] = {}
    for name, code, *_ in _core.OPS:
        graph.setdefault(graphtext.dump_name(code), []).append(name)
    text = json.dumps({"tensor": tensor, "tile": tile, "graph": graph}, indent=2, ensure_ascii=False) + "\n"
    return re.sub(r"\[\n\s+([^][{}]*?)\n\s+\]", lambda found: "[" + re.sub(r",\n\s+", ", ", found[1]) + "]", text)  # as prettier has lists


def misuses() -> str:
    """What strict devices refuse and what faithful ones do: devices/rules.py."""
    def faithful(rule: rules.Rule) -> str:
        return rule.result + (f": `{rule.published}`" if rule.published else "")

    return _markdown(("rule", "misuse", "faithful"), [(f"`{rule.name}`", rule.what, faithful(rule)) for rule in rules.RULES])


def chip_ops() -> str:
    """How the chips compute each op in each dtype: devices/chips.py."""
    def way(group: chips.Group, dtype: str) -> str:
        c220, c310 = (("-" if how == "" else "yes" if how == "native" else how) for how in group.ways.get(dtype, ("", "")))
        return c220 if c220 == c310 else f"{c220} / {c310}"

    rows = [(group.ops.replace(" ", ", "), *(way(group, dtype) for dtype in chips.DTYPES), ", ".join(group.extra)) for group in chips.TABLE]
    return _markdown(("op", *chips.DTYPES, "the cpu besides"), rows)


def templates() -> str:
    """What runs each op, by back end: devices/table_*.py. Tile code is the same on the cpu and on simulated NPUs."""
    ends = ("cpu", "ascend", "cuda", "rocm")
    columns = [dict(doctor.rows(end)) for end in ends]
    return _markdown(("op", "cpu, npu-sim", *ends[1:]), [(name, *(column[name] for column in columns)) for name, *_ in _core.OPS])


_BUILDER = (builder_ops.Elementwise, builder_shapes.Shaped, builder_grouped.Grouped, builder_io.Ends, builder_comm.Collectives,
            builder_custom.Custom)  # the builder's ops, in the order of the table


def signatures() -> str:
    """The builder's ops: their own signatures and docstrings, or the instruction's meaning."""
    meanings = {name.replace("_", "").lower(): meaning for name, _, _, _, _, meaning in _core.OPS}

    def row(name: str, function: Callable[..., Any]) -> tuple[str, str]:
        given = [p.replace(annotation=p.empty) for p in list(inspect.signature(function).parameters.values())[1:]]
        call = str(inspect.Signature(given)).replace("dvm.", "")
        text = " ".join((inspect.getdoc(function) or "").partition("\n\n")[0].split()) or meanings.get(name.replace("_", ""), "")
        return f"`k.{name}{call}`", _plain(text)

    rows = [row(name, function) for kind in _BUILDER for name, function in vars(kind).items()
            if name[0] != "_" and inspect.isfunction(function)]
    return _markdown(("op", "what it gives"), rows)


PAGES = {"kernels.md": (("signatures", signatures),), "bytecode.md": (("opcodes", opcodes), ("tiles", tiles)),
         "devices.md": (("misuses", misuses), ("chips", chip_ops), ("templates", templates))}


def written(name: str, page: str) -> str:
    """The page with its tables as they should be."""
    for table, make in PAGES[name]:
        text = make()
        page, found = re.subn(rf"(<!-- {table} -->\n).*?(<!-- /{table} -->)", lambda m, t=text: m[1] + t + m[2], page, flags=re.S)
        if found != 1:
            raise SystemExit(f"{name} has {found} places for the table of {table}, not one")
    return page


def main() -> int:
    behind = 0
    for name in PAGES:
        page = (DOCS / name).read_text(encoding="utf-8")
        current = written(name, page)
        if "--check" in sys.argv:
            behind |= current != page
        else:
            (DOCS / name).write_text(current, encoding="utf-8")
    if "--check" in sys.argv:
        behind |= not HOVERS.is_file() or HOVERS.read_text(encoding="utf-8") != hovers()
    else:
        HOVERS.write_text(hovers(), encoding="utf-8")
    return int(behind)


if __name__ == "__main__":
    sys.exit(main())
