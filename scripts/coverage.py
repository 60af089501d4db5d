"""Writes docs/coverage.md: 300 calls of PyTorch's and 300 of MindSpore's ops, drawn from what they publish, captured and plain.

    python scripts/coverage.py [torch|mindspore …] [--count N]
"""
from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections import Counter
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RAW = ROOT / "build" / "coverage"
TABLE = ROOT / "docs" / "coverage.md"
TITLES = {"torch": "PyTorch", "mindspore": "MindSpore"}
SECONDS = 120  # without a verdict: the op hangs


KEYS = ("op", "call", "forward", "backward", "note")
ABOUT = """# Coverage of ops

Made by `make coverage`. Ops are drawn at random (fixed seed) from what the frameworks publish: PyTorch's own list of operators with its
samples (`op_db`), MindSpore's `ops`, `mint` and methods of `Tensor` with the first of some sixty tuples of operands that MindSpore itself
takes on a CPU. Left out are ops that the framework cannot run here or that give other numbers each time. Each is called captured and plain;
results and, where there are some, gradients are compared.

- **ours**: our instructions alone computed it; of PyTorch also a view, which is no work. **fell back**: the framework ran some op of it, or
  all; the result is the same.
- **refused**: an error said why. **wrong**: another result; there must be none."""


def work(framework: str, names: list[str]) -> None:
    """In a process of its own, for an op may end it: a line for each name."""
    verdict = import_module(f"coverage_{framework}").verdict
    for name in names:
        print(f"@{json.dumps([name, None])}", flush=True)
        found = verdict(name)
        print(f"@{json.dumps([name, found.told() if found else {}])}", flush=True)


def drawn(framework: str) -> list[str]:
    """All published names in an order that nobody chose."""
    names = sorted(import_module(f"coverage_{framework}").published())
    random.Random(0).shuffle(names)
    return names


def measure(framework: str, count: int) -> None:
    """Writes the verdicts of the first `count` ops of the draw that the framework itself runs, each when it is there."""
    out = subprocess.run([sys.executable, __file__, framework, "--names"], capture_output=True, text=True, check=True).stdout
    names = json.loads(out.splitlines()[-1])
    found: list[dict[str, str]] = []
    at = 0
    while len(found) < count and at < len(names):
        with tempfile.TemporaryFile("w+") as errors:
            command = [sys.executable, __file__, framework, "--work", *names[at:at + 40]]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
            assert process.stdout is not None
            done = 0
            for line in process.stdout:
                if not line.startswith("@"):
                    continue
                name, told = json.loads(line[1:])
                if told is not None:
                    done += 1
                    if told:
                        found.append(told)
                        (RAW / f"{framework}.json").write_text(json.dumps(found[:count], indent=1))
                        print(f"{len(found):4d} {name}: {told['forward']}, {told['backward'] or '-'} {told['note']}", flush=True)
            if process.wait() and done < len(names[at:at + 40]):
                print(f"     {names[at + done]}: ended the process ({process.returncode})", flush=True)
                done += 1
            at += done


def share(rows: list[dict[str, str]], which: str) -> str:
    counts = Counter(row[which] for row in rows if row[which])
    total = counts.total()
    return " | ".join(f"{counts[v]} ({counts[v] / total:.0%})" for v in ("ours", "fell back", "refused", "wrong"))


def write(tables: dict[str, list[dict[str, str]]]) -> None:
    """docs/coverage.md from the verdicts."""
    text = [ABOUT, "", "| | calls | ours | fell back | refused | wrong |", "|---|---|---|---|---|---|"]
    for framework, rows in tables.items():
        for which in ("forward", "backward"):
            text.append(f"| {TITLES[framework]}, {which} | {sum(bool(r[which]) for r in rows)} | {share(rows, which)} |")
    for framework, rows in tables.items():
        text += ["", f"## {TITLES[framework]}", "", "| op | operands | forward | backward | said |", "|---|---|---|---|---|"]
        for row in sorted(rows, key=lambda row: row["op"]):
            cells = (row[key].replace(str(ROOT) + "/", "").replace("|", "\\|").replace("<", "&lt;").strip() for key in KEYS)
            text.append(f"| {' | '.join(cells)} |")
    TABLE.write_text("\n".join(text) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("frameworks", nargs="*", choices=[[], *TITLES])
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--names", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--work", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.names:
        print(json.dumps(drawn(options.frameworks[0])))
    elif options.work:
        work(options.frameworks[0], options.work)
    else:
        RAW.mkdir(parents=True, exist_ok=True)
        for framework in options.frameworks or TITLES:
            measure(framework, options.count)
        write({name: json.loads((RAW / f"{name}.json").read_text()) for name in TITLES if (RAW / f"{name}.json").exists()})


if __name__ == "__main__":
    main()
