"""Without any one of MindSpore's internals a captured function still gives MindSpore's numbers, or says which one is missing."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mindspore")

FOLDER = Path(__file__).resolve().parent


def _asked() -> dict[str, dict[str, Any]]:
    done = subprocess.run([sys.executable, FOLDER / "mindspore_without.py"], capture_output=True, text=True, timeout=250, check=False,
                          env=os.environ | {"GLOG_v": "3"})
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_each_internal_may_be_missing() -> None:
    found = _asked()
    kinds = {kind: [what for what, told in found.items() if told["kind"] == kind] for kind in ("required", "optional")}
    assert len(kinds["required"]) >= 9 and len(kinds["optional"]) >= 7, found
    for what, told in found.items():
        if told["kind"] == "required":
            assert told["error"].startswith("UnsupportedError: MindSpore") and f"has no {what} " in told["error"], told
        else:
            assert told["error"] == "" and told["right"] and sum(f"has no {what} " in text for text in told["notices"]) == 1, (what, told)
