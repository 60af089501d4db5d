"""The documents say what the code says."""
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_tables_are_current():
    check = subprocess.run([sys.executable, str(ROOT / "scripts" / "tables.py"), "--check"], check=False)
    assert check.returncode == 0, "a table of docs or the editor's instructions.json is behind the code: run scripts/tables.py"


def headings(text: str) -> list[str]:
    """The heading lines of a Markdown text, those in fenced code left out."""
    found, fenced = [], False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and re.match(r"#{1,6} ", line):
            found.append(line.strip("# ").strip())
    return found


@pytest.mark.parametrize("path", [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))], ids=lambda path: path.name)
def test_no_heading_is_repeated(path: Path):
    """A second one is a merge that kept both sides; links to it would lead to the first."""
    repeated = [heading for heading, count in Counter(headings(path.read_text(encoding="utf-8"))).items() if count > 1]
    assert not repeated, f"{path.name} has these headings more than once: {repeated}"
