"""Rows about memory, ResNet-50 forward: copies the plan avoids, the most bytes held at one time, page faults once it runs steadily.

    python benchmarks/memory.py [--quick]
    python benchmarks/memory.py CONTENDER      dvm or torch, in this process: its figures as JSON
"""

from __future__ import annotations

import importlib.util
import json
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import command
import networks
import numpy as np
from timing import Row, Share

from dvm_core import _core
from dvm_core.memory_plan import plan

SHAPE = (4, 3, 160, 160)


def _status(field: str) -> int:
    """Bytes of this process, as Linux tells them: VmRSS now, VmHWM at most since it was reset."""
    found = next(text for text in Path("/proc/self/status").read_text().splitlines() if text.startswith(field + ":"))
    return int(found.split()[1]) * 1024


def _measure(contender: str, calls: int) -> dict[str, Any]:
    """Weights are there before; everything that calls bring (results between layers, packed weights, code) is counted."""
    image = np.random.default_rng(0).standard_normal(SHAPE, np.float32)
    forward = networks.RESNETS[contender]()
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark begins here
    before = _status("VmRSS")
    for _ in range(5):
        forward(image)
    peak = _status("VmHWM") - before
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(calls):
        forward(image)
    told: dict[str, Any] = {"peak": peak, "faults": (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults) / calls}
    if contender == "dvm":
        found = plan(max(_core.programs(), key=lambda p: len(p.instructions)))
        told |= {"copies": found.copies, "bytes": found.copied_bytes}
        told |= {"copies avoided": found.copies_avoided, "bytes avoided": found.avoided_bytes}
    return told


def measured(quick: bool) -> Iterator[Row | Share]:
    told: dict[str, dict[str, Any]] = {}
    for contender in ("dvm", "torch"):
        if contender == "dvm" or importlib.util.find_spec(contender):
            arguments = [sys.executable, __file__, contender, *["--quick"] * quick]
            done = subprocess.run(arguments, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(f"{contender}: {done.stderr.strip() or done.returncode}")
            told[contender] = json.loads(done.stdout.splitlines()[-1])
    what, ours = f"ResNet-50 forward, {SHAPE[0]} x {SHAPE[2]}", told["dvm"]
    avoided = {of: ours[f"{of} avoided"] / (ours[f"{of} avoided"] + ours[of]) for of in ("bytes", "copies")}
    yield Share(f"{what}: bytes of copies avoided, of {(ours['bytes avoided'] + ours['bytes']) / 1e6:.0f} MB", avoided, aim="≥ 63 %")
    yield Row(f"{what}: most bytes at one time", {name: t["peak"] / 1e6 for name, t in told.items()}, aim="under torch's", unit="MB")
    yield Row(f"{what}: page faults of a call", {name: t["faults"] for name, t in told.items()}, aim="none", unit="faults")


def main() -> int:
    if len(sys.argv) > 1 and sys.argv[1] in networks.RESNETS:
        print(json.dumps(_measure(sys.argv[1], 5 if "--quick" in sys.argv else 20)))
        return 0
    return command.rows(__doc__, measured)


if __name__ == "__main__":
    sys.exit(main())
