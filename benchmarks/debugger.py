"""What a debugger costs the program it looks at, and how fast it answers.

    python benchmarks/debugger.py [--quick]

One program trains the digits model; the debugger enters and leaves it in turn, with something else set each time, and a setting's figure is
the mean step with it against the mean step without a debugger beside it. Peer: debugpy, by itself, where it can do the same.
"""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import command
from debugged import Steps
from digits import EXAMPLE
from dvm_adapter.client import Client
from timing import Row, Share

FOLDER = Path(__file__).resolve().parent
MODEL = EXAMPLE / "model.py"
OURS, DEBUGPY = ("dvm_adapter",), ("debugpy.adapter",)
STOP = "scores = scores / math.sqrt"  # in the attention, twice a step
WATCHED = ("q", "k", "v", "scores", "weights", "mixed", "h", "x", "pooled", "logits")
_WAIT = 120.0  # seconds, on hanging

Set = Callable[[Client], None]


def _line(text: str) -> int:
    return next(number for number, line in enumerate(MODEL.read_text().splitlines(), 1) if text in line)


def _nothing(client: Client) -> None:
    """An attached debugger, and that is all."""


def _condition(client: Client) -> None:
    client.set_breakpoints(str(MODEL), [{"line": _line(STOP), "condition": "scores.max() > 1e30"}])


def _nan(client: Client) -> None:
    client.request("setExceptionBreakpoints", filters=["nan"])


def _stats(client: Client) -> None:
    for name in WATCHED:
        client.request("dvm/watch", expression=name, path=str(MODEL), what="stats", everyN=1)


SETTINGS: dict[str, tuple[Set, dict[str, Any], str]] = {  # what is set, the `dvm` settings, the aim
    "nothing set": (_nothing, {}, "≥ 0.99 × (costs ≤ 1 %)"),
    "a condition that never holds": (_condition, {}, ""),
    "NaN filter on every instruction": (_nan, {}, ""),
    "statistics of 10 tensors, every step": (_stats, {}, ""),
    "every tensor of each 100th launch": (_nothing, {"capture": "all", "sampleEvery": 100}, ""),
}


class Program:
    """A `debugged.py`, started here or by a session."""

    def __init__(self, folder: Path, name: str, *arguments: str) -> None:
        self.until, self.out = folder / f"{name}.until", folder / f"{name}.steps"
        self.arguments = [*arguments, "--until", str(self.until), "--out", str(self.out)]
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> int:
        """Its process id; it is warm."""
        self.process = subprocess.Popen([sys.executable, str(FOLDER / "debugged.py"), *self.arguments], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        while self.process.stdout.readline().strip() != "ready":
            if self.process.poll() is not None:
                raise RuntimeError(f"the program ended with {self.process.returncode}")
        return self.process.pid

    def steps(self) -> Steps:
        return Steps(self.out)

    def end(self) -> None:
        self.until.touch()
        self.wait()

    def wait(self) -> None:
        if self.process is not None and self.process.wait(_WAIT):
            raise RuntimeError(f"the program ended with {self.process.returncode}")


@contextlib.contextmanager
def session(adapter: tuple[str, ...], configure: Set = _nothing, **arguments: Any) -> Iterator[Client]:
    """A session until the block ends; a program that was attached to goes on."""
    client = Client([sys.executable, "-m", *adapter], stderr=subprocess.DEVNULL)
    try:
        client.launch(configure, python=[sys.executable], justMyCode=True, subProcess=False, **arguments)
        yield client
    finally:
        client.close(terminate=arguments.get("request") != "attach")


# ---- what it costs --------------------------------------------------------------------------------------------------------------------
def launched(steps: int, folder: Path, pairs: int) -> Row:
    """The same program without and with a debugger that has nothing set, in turn; each reports the median of its own steps."""
    samples: dict[str, list[float]] = {"dvm": [], "no debugger": []}
    for turn in range(pairs):
        for name in list(samples) if turn % 2 == 0 else reversed(samples):
            program = Program(folder, f"launched-{name}-{turn}", "--steps", str(steps))
            if name == "dvm":
                with session(OURS, program=str(FOLDER / "debugged.py"), args=program.arguments, cwd=str(folder)) as client:
                    client.event("terminated", timeout=_WAIT)
            else:
                program.start()
                program.wait()
            samples[name].append(statistics.median(took for _, took in program.steps().all()))
    return Row("digits: step, launched, nothing set", {n: statistics.median(v) for n, v in samples.items()}, aim=SETTINGS["nothing set"][2])


def attached(steps: int, folder: Path, turns: int) -> Iterator[Row]:
    """Each setting beside no debugger at all, in turn, in one program."""
    program = Program(folder, "attached")
    pid = program.start()
    taken = program.steps()
    means: dict[str, list[float]] = {}

    def burst(name: str) -> None:
        for count in (steps // 10, steps):  # first until what was set or taken back has happened
            first = len(taken)
            while len(taken) < first + count:
                time.sleep(0.02)
        means.setdefault(name, []).append(statistics.fmean(took for _, took in taken.all()[first:]))

    for _ in range(turns):
        for name, (configure, settings, _) in SETTINGS.items():
            burst(f"without {name}")
            with session(OURS, configure, request="attach", processId=pid, dvm=settings):
                burst(name)
    program.end()
    for name, (_, _, aim) in SETTINGS.items():
        times = {"dvm": statistics.median(means[name]), "no debugger": statistics.median(means[f"without {name}"])}
        yield Row(f"digits: step, attached, {name}", times, aim=aim)


def pure_python(folder: Path, pairs: int) -> Iterator[Row]:
    """A script without tensors: what it takes by its own clock, and the whole session."""
    inside: dict[str, list[float]] = {"dvm": [], "debugpy": [], "no debugger": []}
    whole: dict[str, list[float]] = {"dvm": [], "debugpy": []}
    script, out = FOLDER / "pure_python.py", folder / "pure.txt"
    for turn in range(pairs):
        for name in list(inside) if turn % 2 == 0 else reversed(inside):
            began = time.perf_counter()
            if name == "no debugger":
                subprocess.run([sys.executable, str(script), str(out)], check=True, stdout=subprocess.DEVNULL)
            else:
                with session(OURS if name == "dvm" else DEBUGPY, program=str(script), args=[str(out)], cwd=str(folder)) as client:
                    client.event("terminated", timeout=_WAIT)
                    whole[name].append(time.perf_counter() - began)
            inside[name].append(float(out.read_text()))
    aim = "≥ 0.95 × debugpy (≤ 1.05 × its time)"
    yield Row("pure Python under the debugger", {n: statistics.median(v) for n, v in inside.items()}, aim=aim)
    yield Row("pure Python: the whole session", {n: statistics.median(v) for n, v in whole.items()}, aim=aim)


# ---- how fast it answers --------------------------------------------------------------------------------------------------------------
def stops(folder: Path, count: int) -> Iterator[Row]:
    """A breakpoint in the attention, in a tensor program and (debugpy) in the same program with MindSpore alone."""
    found: dict[str, dict[str, float]] = {}
    for name, adapter, arguments in (("dvm", OURS, ()), ("debugpy", DEBUGPY, ("--plain",))):
        program = Program(folder, f"stops-{name}", *arguments)
        stack, locals_ = [], []

        def configure(client: Client) -> None:
            client.set_breakpoints(str(MODEL), [_line(STOP)])

        with session(adapter, configure, program=str(FOLDER / "debugged.py"), args=program.arguments, cwd=str(folder)) as client:
            for _ in range(count):
                thread = client.event("stopped", timeout=_WAIT)["body"]["threadId"]
                began = time.perf_counter()
                frames = client.stack(thread, startFrame=0, levels=20)
                stack.append(time.perf_counter() - began)
                user = next(frame["id"] for frame in frames if frame.get("source"))
                client.variables(next(iter(client.scopes(user).values()))["variablesReference"])
                locals_.append(time.perf_counter() - began)
                client.request("continue", threadId=thread)
        found[name] = {"stop to stack": statistics.median(stack[2:]), "stop to stack, scopes and variables": statistics.median(locals_[2:])}
    for what in found["dvm"]:
        yield Row(f"debugger: {what}", {name: times[what] for name, times in found.items()})


def entering(folder: Path, count: int) -> Row:
    """Attaching to a loop at full load, until breakpoints are in force."""
    program, took = Program(folder, "entering"), []
    pid = program.start()
    for _ in range(count):
        began = time.perf_counter()
        with session(OURS, request="attach", processId=pid):
            took.append(time.perf_counter() - began)
    program.end()
    return Row("debugger: attach to a loop at full load", {"dvm": statistics.median(took)})


def events(folder: Path, seconds: float) -> Iterator[Row | Share]:
    """A watch that sends values of one tensor each step, while the loop runs at full load."""
    program = Program(folder, "events")
    pid = program.start()
    with session(OURS, request="attach", processId=pid) as client:
        client.request("dvm/watch", expression="scores", path=str(MODEL), what="values", everyN=1)
        time.sleep(seconds / 5)
        first, began = len(list(client.seen("dvm/snapshot"))), time.perf_counter()
        time.sleep(seconds)
        ended, told = time.perf_counter(), list(client.seen("dvm/snapshot"))[first:]
    program.end()
    steps = [at for at, took in program.steps().all() if began <= at and at + took <= ended]
    yield Row("debugger: one snapshot, at full load", {"dvm": (ended - began) / max(1, len(told))})
    due = len(steps) * len({(one["program"], one["instruction"]) for one in told}) or 1
    dropped = sum(int(one.get("dropped") or 0) for one in told)
    yield Share("debugger: snapshots of those due", {"came": len(told) / due, "dropped": dropped / due})


def one_map(folder: Path, count: int) -> Iterator[Row]:
    """From a line to its instructions, in a captured function of 1,000 lines: the first question, and those that follow."""
    lines, script = 1000, folder / "thousand.py"
    script.write_text("import time\n\nimport dvm_core as dvm\n\n\n@dvm.jit\ndef long(x):\n"
                      + "".join(f"    x = x * 1.{n:04} + 0.5\n" for n in range(lines))
                      + "    return x\n\n\nwhile True:\n    long(dvm.tensor([[1.0, 2.0]])).numpy()\n    time.sleep(0.01)\n")
    took = []
    with session(OURS, program=str(script), cwd=str(folder)) as client:
        client.event("dvm/program", timeout=_WAIT)
        for number in range(count):
            began = time.perf_counter()
            found = client.request("dvm/line", path=str(script), line=8 + 37 * number % lines)
            took.append(time.perf_counter() - began)
            if not found["programs"]:
                raise RuntimeError("a line of the captured function has no instructions")
    yield Row("debugger: line to instructions, of 1,000 lines, first", {"dvm": took[0]}, aim="< 3 ms")
    yield Row("debugger: line to instructions, of 1,000 lines", {"dvm": statistics.median(took)}, aim="< 3 ms")


def measured(quick: bool, folder: Path | None = None) -> Iterator[Row | Share]:
    with tempfile.TemporaryDirectory(dir=folder) as made:
        path = Path(made)
        yield launched(20 if quick else 500, path, 1 if quick else 5)
        yield from attached(20 if quick else 300, path, 1 if quick else 5)
        yield from pure_python(path, 1 if quick else 5)
        yield from stops(path, 5 if quick else 60)
        yield entering(path, 2 if quick else 15)
        yield from events(path, 1.0 if quick else 5.0)
        yield from one_map(path, 5 if quick else 50)


if __name__ == "__main__":
    sys.exit(command.rows(__doc__, measured))
