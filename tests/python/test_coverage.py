"""docs/coverage.md: nothing in it is wrong, its shares are those of its rows, and some of its rows are measured again."""
from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "coverage.py"
ORDER = ("ours", "fell back", "refused", "wrong", "")
Row = tuple[str, str, str, str, str]  # op, operands, forward, backward, what was said


def tables() -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for part in (ROOT / "docs" / "coverage.md").read_text().split("\n## ")[1:]:
        title, _, rest = part.partition("\n")
        rows = [line.replace("\\|", "/").strip("|").split("|") for line in rest.splitlines() if line.startswith("| ")][1:]
        found[title] = [tuple(cell.strip() for cell in row) for row in rows]  # type: ignore[misc]
    return found


def test_no_op_gives_another_result_and_errors_say_something() -> None:
    found = tables()
    assert "MindSpore" in found
    for rows in found.values():
        assert len(rows) > 50 and len({row[0] for row in rows}) == len(rows)
        for _, _, forward, backward, note in rows:
            assert forward in ORDER[:3] and backward in (*ORDER[:3], "")
            assert "refused" not in (forward, backward) or len(note) > 20


def test_shares_are_those_of_the_rows() -> None:
    text = (ROOT / "docs" / "coverage.md").read_text()
    for title, rows in tables().items():
        for column, which in ((2, "forward"), (3, "backward")):
            counts = Counter(row[column] for row in rows if row[column])
            shares = " | ".join(f"{counts[v]} ({counts[v] / counts.total():.0%})" for v in ORDER[:4])
            assert f"| {title}, {which} | {counts.total()} | {shares} |" in text


@pytest.mark.parametrize("title, framework", [("PyTorch", "torch"), ("MindSpore", "mindspore")])
def test_some_rows_are_as_the_table_says_or_better(title: str, framework: str) -> None:
    pytest.importorskip(framework)
    rows = {row[0]: row for row in tables().get(title, ())}
    if not rows:
        pytest.skip(f"docs/coverage.md has no table of {title} yet")
    seed = int(os.environ.get("DVM_SEED") or random.randrange(1 << 32))
    names = random.Random(seed).sample(sorted(rows), 4)  # whichever: none may be worse
    again = f"DVM_SEED={seed} chooses these ops again: {', '.join(names)}"
    done = subprocess.run([sys.executable, SCRIPT, framework, "--work", *names], capture_output=True, text=True)
    assert done.returncode == 0, f"{again}\n{done.stderr[-4000:]}"
    told = [json.loads(line[1:]) for line in done.stdout.splitlines() if line.startswith("@")]
    verdicts = {name: verdict for name, verdict in told if verdict}
    assert sorted(verdicts) == sorted(names), again
    for name, verdict in verdicts.items():
        for column, which in ((2, "forward"), (3, "backward")):
            assert verdict[which] != "wrong", (name, verdict, again)
            assert ORDER.index(verdict[which]) <= ORDER.index(rows[name][column]), (name, which, verdict, again, "make coverage")
