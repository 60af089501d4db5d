"""The documents say what the code says."""
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_tables_are_current():
    check = subprocess.run([sys.executable, str(ROOT / "scripts" / "tables.py"), "--check"], check=False)
    assert check.returncode == 0, "a table of docs or the editor's instructions.json is behind the code: run scripts/tables.py"
