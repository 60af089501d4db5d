"""Trains the digits model under the debugger, over real DAP, and shows what an onlooker would want to see.

Run by `make demo`. The last line is `DEMO OK {json}`; any expectation that does not hold ends the run with `DEMO FAILED` and exit code 1.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

from dvm_adapter.client import Client
from dvm_adapter.memory_html import render as render_memory
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

HERE = Path(__file__).resolve().parent
STEP_LINE = re.compile(r"^step +(\d+) +loss +(\S+) +lr +(\S+)")
console = Console(highlight=False, soft_wrap=True)

# The edits: text in the source, text that replaces it.
LOSS = ("loss = cross_entropy(logits, y)", "loss = 0.9 * cross_entropy(logits, y) - 0.1 * ops.log_softmax(logits, axis=-1).mean()")
RATE = ("return PEAK * (0.1 + 0.45", "return 0.5 * PEAK * (0.1 + 0.45")
SYNTAX_ERROR = ("logits = model(x)", "logits = model(x")
WRONG_SHAPE = ("pooled = x.mean(axis=1)", "pooled = x.mean(axis=2)")


class Failed(Exception):
    """Something the demonstration promises did not happen."""


def expect(condition: Any, what: str) -> None:
    if not condition:
        raise Failed(what)


def heading(text: str) -> None:
    console.print(f"\n[bold]{text}[/bold]")


class Source:
    """A source file of the demonstration's own copy, edited as a person would: read, replace, save."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def line_of(self, text: str) -> int:
        for number, line in enumerate(self.path.read_text().splitlines(), 1):
            if text in line:
                return number
        raise Failed(f"{self.path.name} has no line with {text!r}")

    def replace(self, *pairs: tuple[str, str]) -> str:
        """Saves the file with each old text replaced by its new one; gives the text it had before."""
        before = text = self.path.read_text()
        for old, new in pairs:
            expect(old in text, f"{self.path.name} has no text {old!r} to edit")
            text = text.replace(old, new)
        self.path.write_text(text)
        return before


class Run:
    """The debug session: what the program printed, and the last stop."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.losses: dict[int, float] = {}
        self.rates: dict[int, float] = {}
        self.order: list[int] = []
        self.text = ""
        self._partial = ""
        client.on("output", self._output)

    def _output(self, body: dict[str, Any]) -> None:
        if body.get("category") not in ("stdout", "stderr"):
            return
        self.text += body["output"]
        self._partial += body["output"]
        *lines, self._partial = self._partial.split("\n")
        for line in lines:
            if match := STEP_LINE.match(line):
                step = int(match[1])
                self.order.append(step)
                self.losses[step], self.rates[step] = float(match[2]), float(match[3])

    @property
    def step(self) -> int:
        return self.order[-1] if self.order else 0

    def wait_for_step(self, step: int, timeout: float = 60) -> None:
        end = time.monotonic() + timeout
        while self.step < step:
            if time.monotonic() > end or self.client.closed:
                raise Failed(f"training did not reach step {step} (it is at {self.step})\n{self.text[-2000:]}")
            time.sleep(0.02)

    def stopped(self, timeout: float = 60) -> dict[str, Any]:
        event = self.client.event("stopped", "terminated", timeout=timeout)
        expect(event["event"] == "stopped", f"the program ended instead of stopping:\n{self.text[-2000:]}")
        return event["body"]

    def go_on(self, stop: dict[str, Any]) -> None:
        self.client.request("continue", threadId=stop["threadId"])


def show_stop(run: Run, stop: dict[str, Any], values_of: str | None = None) -> list[dict[str, Any]]:
    """Prints the call stack, the tensors and the disassembly around a stop; gives the frames."""
    client = run.client
    frames = client.stack(stop["threadId"])
    console.print(f"  stopped: {stop.get('description') or stop['reason']}")
    console.print("  call stack")
    for frame in frames[:7]:
        source = frame.get("source") or {}
        place = f"{source.get('name') or Path(source.get('path', '')).name}:{frame['line']}" if source else ""
        console.print(f"    {frame['name']:<60} {place}", markup=False)
    tensors = client.variables(client.scopes(frames[0]["id"])["Tensors"]["variablesReference"])
    expect(tensors, "the stop shows no tensors")
    console.print("  tensors")
    wide = max(len(tensor["name"]) for tensor in tensors[:6])
    for tensor in tensors[:6]:
        console.print(f"    {tensor['name']:<{wide}}  {tensor['value']}", markup=False)
    if values_of:
        wanted = next((t for t in tensors if t["name"] == values_of), None)
        expect(wanted, f"no tensor named {values_of} at the stop (there are {[t['name'] for t in tensors]})")
        children = {c["name"]: c for c in client.variables(wanted["variablesReference"])}
        for name in ("shape", "dtype", "strides", "device"):
            expect(name in children, f"{values_of} shows no {name}")
        values = next(c for name, c in children.items() if name.startswith("values"))
        numbers = [v["value"] for v in client.variables(values["variablesReference"], filter="indexed", start=0, count=4)]
        shown = textwrap.shorten(", ".join(numbers), 110, placeholder=" …")
        console.print(f"    {values_of}: shape {children['shape']['value']}, values {shown}", markup=False)
        expect(len(numbers) == 4, f"{values_of} gives no values")
    here = frames[0]["instructionPointerReference"]
    listing = client.request("disassemble", memoryReference=here, instructionOffset=-3, instructionCount=6)
    console.print("  disassembly")
    for row in listing["instructions"]:
        mark = "▸" if row["address"] == here else " "
        if row["instruction"]:  # a program that is still being recorded has no text after its end
            console.print(f"   {mark} {row['address']}  {row['instruction']}", markup=False)
    expect(len(listing["instructions"]) == 6, "disassemble did not give the number of instructions asked for")
    return frames


def reload_outcome(run: Run, timeout: float = 20) -> dict[str, Any]:
    return run.client.event("dvm/reload", timeout=timeout)["body"]


def tell_reload(answer: dict[str, Any]) -> None:
    if answer["outcome"] == "applied":
        count = f"{answer['instructionsPatched']} of {answer['instructionsTotal']} instructions"
        console.print(f"  applied at step {answer['step']} · {count} · {answer['ms']:.1f} ms")
        for change in answer.get("changes", [])[:4]:
            texts = [text for text in (change.get("old"), change.get("new")) if text]
            console.print(f"    {change['function']}: {change['what']}: {' → '.join(texts)}", markup=False)
    else:
        console.print(f"  {answer['outcome']}: {'; '.join(answer['reasons'])}", markup=False)


def demonstrate(work: Path, steps: int) -> dict[str, Any]:
    model, train = Source(work / "model.py"), Source(work / "train.py")
    scores, hidden = model.line_of("scores = "), model.line_of("ops.gelu(")
    client = Client([sys.executable, "-m", "dvm_adapter", "--log", str(work / "adapter.log")], stderr=(work / "adapter.err").open("w"))
    run = Run(client)
    try:
        console.print("A small Transformer learns scikit-learn's digits on the tensor VM, while we look inside it.")
        heading("1  start under the debugger, with a breakpoint on a tensor line inside a fused area")

        def configure(c: Client) -> None:
            c.set_breakpoints(str(model.path), [scores])
            c.request("setExceptionBreakpoints", filters=[])

        client.launch(configure, program=str(train.path), args=["--steps", str(steps), "--losses", str(work / "losses.txt")], cwd=str(work),
                      python=[sys.executable], justMyCode=True, dvm={"hotReload": "onSave"})
        console.print(f"  breakpoint at model.py:{scores}  {model.path.read_text().splitlines()[scores - 1].strip()}", markup=False)
        stop = run.stopped(timeout=120)
        frames = show_stop(run, stop, values_of="q")
        expect(frames[0]["line"] == scores and "──" in frames[1]["name"], "the tensor line is not on top of the Python frames")
        stops = 1

        heading("2  the backward of a line")
        client.set_breakpoints(str(model.path), [{"line": hidden, "mode": "backward"}])
        run.go_on(stop)
        stop = run.stopped()
        frames = show_stop(run, stop)
        expect(frames[0]["line"] == hidden and "backward" in frames[0]["name"], "the stop is not named as the backward of its line")
        stops += 1
        client.set_breakpoints(str(model.path), [])

        heading("3  watch a tensor that never exists in memory: the scores, fused away between the matmul and the softmax")
        watch = client.request("dvm/watch", expression="scores", path=str(model.path), line=scores, what="stats", everyN=1)
        run.go_on(stop)
        snapshots = [client.event("dvm/snapshot", timeout=30)["body"] for _ in range(5)]
        for s in snapshots:
            numbers = "  ".join(f"{what} {s['stats'][what]:.3g}" for what in ("min", "max", "mean", "std", "nan"))
            console.print(f"  step {s['step']:>5}  {s['name']}  {numbers}")
        client.request("dvm/unwatch", watchId=watch["watchId"])

        heading("4  edit the loss and the schedule in one save while training goes on")
        run.wait_for_step(steps // 4)  # the loss is small by now, so that label smoothing shows
        before = run.step
        train.replace(LOSS, RATE)
        applied = reload_outcome(run)
        tell_reload(applied)
        expect(applied["outcome"] == "applied", "the edit was not applied")
        at = applied["step"]
        run.wait_for_step(at + 30)
        during = at - before
        expect(before <= at <= run.step, "the step of the reload is none of this run's")
        console.print(f"  training did not stop: saved at step {before}, in force at step {at}, now at step {run.step}")
        old, new = (sum(run.losses[s] for s in span) / len(span) for span in (range(at - 10, at), range(at, at + 10)))
        console.print(f"  loss   10 steps before {at}: {old:.4f}   10 steps from {at}: {new:.4f}  (label smoothing raises it)")
        console.print(f"  rate   step {at - 1}: {run.rates[at - 1]:.2e}   step {at}: {run.rates[at]:.2e}  (halved)")
        expect(run.rates[at] < 0.6 * run.rates[at - 1], "the schedule's edit did not take effect")
        expect(new > old, "the loss's edit did not take effect")

        heading("5  edits that cannot work are refused, and training goes on")
        at = run.step
        for what, source, edit in (("a syntax error", train, SYNTAX_ERROR), ("a wrong shape", model, WRONG_SHAPE)):
            good = source.replace(edit)
            refused = reload_outcome(run)
            console.print(f"  {what}:", markup=False)
            tell_reload(refused)
            expect(refused["outcome"] == "refused" and refused["reasons"], f"{what} was not refused")
            source.path.write_text(good)
            reload_outcome(run)
        run.wait_for_step(at + 20)
        console.print(f"  training went on: step {at} → {run.step}")

        heading("6  memory, and on to the end")
        steps_shown = [run.step - 4, run.step]
        memory = client.request("dvm/memory", timeout=30, steps=steps_shown)
        expect(memory["buffers"], "no buffer was recorded")
        page = work / "memory.html"
        page.write_text(render_memory(memory), encoding="utf-8")
        steps_text, peak = "steps {} to {}".format(*steps_shown), f"peak {memory['peak']['bytes'] / 1e6:.2f} MB"
        console.print(f"  {steps_text}: {len(memory['buffers'])} buffers, {peak} → {page}", markup=False)
        columns = (TextColumn("  training"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
            task = bar.add_task("steps", total=steps, completed=run.step)
            end = time.monotonic() + 600
            while not list(client.seen("terminated")):
                expect(time.monotonic() < end, "training did not end")
                bar.update(task, completed=run.step)
                time.sleep(0.05)
            bar.update(task, completed=run.step)
        accuracy = re.search(r"accuracy[^:]*: *([0-9.]+)%", run.text)
        expect(accuracy, f"no accuracy was printed\n{run.text[-2000:]}")
        held_out = float(accuracy[1]) / 100
        console.print(f"  {len(run.order)} steps, loss {run.losses[1]:.4f} → {run.losses[steps]:.4f}, held-out accuracy {held_out:.2%}")
        expect(run.order == list(range(1, steps + 1)), "a step was lost or repeated")
        expect(held_out >= 0.97, f"held-out accuracy is {held_out:.2%}, below 97 %")
        return {"steps": steps, "loss_first": run.losses[1], "loss_last": run.losses[steps], "accuracy": round(held_out, 4), "stops": stops,
                "snapshots": len(list(client.seen("dvm/snapshot"))), "reload_ms": round(applied["ms"], 3), "steps_during_reload": during,
                "refused": 2, "memory_html": str(page)}
    finally:
        client.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--out", type=Path, default=Path("build/demo"))
    options = parser.parse_args()
    work = options.out.resolve()
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    for name in ("model.py", "train.py"):
        shutil.copy(HERE / name, work / name)
    try:
        result = demonstrate(work, options.steps)
    except Exception as error:
        console.print(f"\nDEMO FAILED {type(error).__name__}: {error}", markup=False)
        console.print(f"logs: {work}", markup=False)
        return 1
    print("DEMO OK " + json.dumps(result), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
