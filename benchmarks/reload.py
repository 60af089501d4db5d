"""Hot reload: from a save until the new code is in force, by stages; what the training thread waits, and what its steps take meanwhile.

    python benchmarks/reload.py [--quick]
"""

from __future__ import annotations

import importlib.util
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import command
import numpy as np
import reload_pairs
from timing import Row, Share

import dvm_core as dvm
from dvm_core import agent, onsave
from dvm_core.hotreload import fingerprint, reloader, transaction
from dvm_core.hotreload import plan as planning

LINES = 1000
STAGES = ("watch", "parse", "classify", "build", "boundary", "swap", "verify")
HEAD = """import dvm_core as dvm

RATE = 0.5


@dvm.jit
def step(w, x, y):
    e = x @ w - y
    h = (e * 1.0).sigmoid() * e
    g = x.T @ h * RATE
    return w - g, (e * e).mean()

"""
HELPER = """
def helper_{n}(values, scale={n}.0, *, shift=0.5):
    total = shift
    for value in values:
        if value > {n}:
            total += value * scale
        else:
            total -= value / (scale + 1.0)
    return [total, len(values), "{n}"]

"""


def text(lines: int, factor: str) -> str:
    """A module of so many lines; the edit is the factor in its captured function."""
    body = HEAD.replace("* 1.0)", f"* {factor})")
    number = 0
    while body.count("\n") < lines:
        body += HELPER.format(n=number)
        number += 1
    return body


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Stages:
    """The clock at the seams of a reload: functions of it are wrapped while this is entered."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}
        self.held: list[float] = []
        self._restore: list[tuple[Any, str, Any]] = []
        self._mark = 0.0

    def __enter__(self) -> Stages:
        self._around(reloader, "parse", "parse")
        self._around(reloader, "parse_beside", "parse")
        self._around(reloader, "classify", "classify")
        self._around(planning, "make", "build")
        self._around(fingerprint, "snapshot", "build")
        self._wrap(transaction.Transaction, "queue", self._queued)
        self._wrap(transaction.Transaction, "_swap", self._swapped)
        self._wrap(transaction.Transaction, "_keep", self._kept)
        return self

    def __exit__(self, *error: object) -> None:
        for owner, name, was in reversed(self._restore):
            setattr(owner, name, was)

    def _wrap(self, owner: Any, name: str, made: Callable[[Any], Any]) -> None:
        was = getattr(owner, name)
        self._restore.append((owner, name, was))
        setattr(owner, name, made(was))

    def add(self, stage: str, seconds: float) -> None:
        self.spent[stage] = self.spent.get(stage, 0.0) + seconds

    def _around(self, owner: Any, name: str, stage: str) -> None:
        def made(was: Any) -> Any:
            def timed(*args: Any, **named: Any) -> Any:
                begun = time.perf_counter()
                try:
                    return was(*args, **named)
                finally:
                    self.add(stage, time.perf_counter() - begun)
            return timed
        self._wrap(owner, name, made)

    def _queued(self, was: Any) -> Any:
        def queue(one: Any) -> None:
            self._mark = time.perf_counter()
            was(one)
        return queue

    def _swapped(self, was: Any) -> Any:
        def swap(one: Any, step: int) -> None:
            begun = time.perf_counter()
            self.add("boundary", begun - self._mark)
            was(one, step)
            self._mark = time.perf_counter()
            self.add("swap", self._mark - begun)
            self.held.append(self._mark - begun)
        return swap

    def _kept(self, was: Any) -> Any:
        def keep(one: Any, step: int) -> None:
            self.add("verify", time.perf_counter() - self._mark)
            was(one, step)
        return keep


class Training:
    """Calls the module's captured function on this thread; `saves` are made by another meanwhile."""

    def __init__(self, module: ModuleType) -> None:
        random = np.random.default_rng(0)
        self.module = module
        self.x, self.y = (dvm.tensor(random.standard_normal(shape, dtype=np.float32)) for shape in ((64, 128), (64, 32)))
        self.w = dvm.tensor(np.zeros((128, 32), np.float32))

    def step(self) -> float:
        begun = time.perf_counter()
        _, loss = self.module.step(self.w, self.x, self.y)
        float(loss.numpy())
        return time.perf_counter() - begun

    def until(self, ended: threading.Event) -> list[float]:
        times = []
        while not ended.is_set():
            times.append(self.step())
        return times


def _saved(path: Path, new: str) -> float:
    part = path.with_suffix(".part")
    part.write_text(new)
    os.replace(part, path)
    return time.perf_counter()


def stages(path: Path, training: Training, saves: int, pause: float = 0.0) -> tuple[list[dict[str, float]], list[float], list[float]]:
    """Of every save what each stage took; what the training thread was held for; its steps meanwhile. pause: seconds between saves."""
    found: list[dict[str, float]] = []
    ended = threading.Event()
    answered = threading.Event()
    told: list[Any] = []

    def tell(report: Any) -> None:
        told.append(report)
        answered.set()

    was, agent.tell = agent.tell, tell
    watcher = onsave.OnSave(path)
    asked: list[float] = []
    ask = watcher._reloader.reload

    def reload(where: str, new: str | None, reply: Any, settled: bool) -> None:
        asked.append(time.perf_counter())
        ask(where, new, reply, settled)

    watcher._reloader.reload = reload  # type: ignore[method-assign]
    with Stages() as clock:
        def run() -> None:
            try:
                for number in range(saves + 3):
                    time.sleep(pause)
                    clock.spent.clear()
                    answered.clear()
                    at = _saved(path, text(LINES, f"1.{number + 1:03}"))
                    if not answered.wait(60) or told[-1].outcome != "applied":
                        raise RuntimeError(f"a save was not applied: {told[-1:]}")
                    if number >= 3:  # the text in force is parsed with the first
                        found.append({"watch": asked[-1] - at, **clock.spent})
            finally:
                ended.set()
        watcher.start()
        saver = threading.Thread(target=run)
        saver.start()
        steps = training.until(ended)
        saver.join()
    watcher.stop()
    agent.tell = was
    if len(found) < saves:
        raise RuntimeError("a save was not applied")
    return found, clock.held[3:], steps


def plain_steps(training: Training, seconds: float) -> list[float]:
    ended = threading.Event()
    timer = threading.Timer(seconds, ended.set)
    timer.start()
    return training.until(ended)


def p99(times: list[float]) -> float:
    return statistics.quantiles(times, n=100)[98]


def measured(quick: bool, folder: Path | None = None) -> Iterator[Row | Share]:
    with tempfile.TemporaryDirectory(dir=folder) as made:
        path = Path(made).resolve() / "reload_model.py"
        path.write_text(text(LINES, "1.0"))
        training = Training(load(path))
        plain_steps(training, 0.2)
        found: list[dict[str, float]] = []
        held: list[float] = []
        pauses = {"back to back": (10 if quick else 40, 0.0), "one a second": (3 if quick else 10, 1.0)}
        ratios: dict[str, dict[str, list[float]]] = {name: {"dvm": [], "without reloads": []} for name in pauses}
        for _ in range(2 if quick else 5):  # in turn: the machine's own disturbances fall on both
            for name, (saves, pause) in pauses.items():
                begun = time.perf_counter()
                more, waits, steps = stages(path, training, saves, pause)
                if not pause:
                    found, held = found + more, held + waits
                ratios[name]["dvm"].append(p99(steps))
                ratios[name]["without reloads"].append(p99(plain_steps(training, time.perf_counter() - begun)))
        name = f"reload, one line of {LINES:,}: "
        yield Row(name + "save to in force", {"dvm": statistics.median(sum(one[s] for s in STAGES[:-1]) for one in found)}, aim="≤ 12 ms")
        yield Row(name + "asked to in force", {"dvm": statistics.median(sum(one[s] for s in STAGES[1:-1]) for one in found)})
        for stage in STAGES:
            yield Row(f"reload, stage: {stage}", {"dvm": statistics.median(one[stage] for one in found)})
        yield Row("reload: the training thread waits", {"dvm": statistics.median(held)}, aim="≤ 0.2 ms")
        for name, times in ratios.items():
            yield Row(f"reload: p99 of a step, saves {name}", {who: statistics.median(r) for who, r in times.items()},
                      aim="≥ 0.91 × (≤ 1.1 × as long)")
        yield from reload_pairs.measured(quick, Path(made))


if __name__ == "__main__":
    sys.exit(command.rows(__doc__, measured))
