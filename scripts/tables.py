"""Writes the instruction tables of docs/bytecode.md from the native core's own lists; --check says whether they are current.

    .venv/bin/python scripts/tables.py [--check]
"""
from __future__ import annotations

import re
import sys
from pathlib import Path

from dvm_core import _core

PAGE = Path(__file__).resolve().parents[1] / "docs" / "bytecode.md"
LAYOUTS = {"unary": "a", "binary": "a, b", "select": "a, b, c", "matmul": "product", "join": "a, join",
           "hook": "a, hook", "random": "instruction"}


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


def written(page: str) -> str:
    """The page with its tables as they should be."""
    for name, table in (("opcodes", opcodes()), ("tiles", tiles())):
        page, found = re.subn(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", lambda m, t=table: m[1] + t + m[2], page, flags=re.S)
        if found != 1:
            raise SystemExit(f"{PAGE.name} has {found} places for the table of {name}, not one")
    return page


def main() -> int:
    page = PAGE.read_text(encoding="utf-8")
    current = written(page)
    if "--check" in sys.argv:
        return int(current != page)
    PAGE.write_text(current, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
