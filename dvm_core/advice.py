"""Whether a captured function gains from the VM: a verdict, the figures behind it, why, and what to do.

Facts are what was counted while the program ran. Rules are a table, read from the top: the first that holds gives the verdict. What else
is worth knowing are notes, another table, of which each that holds is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

PAYS, NOT, UNKNOWN = "pays", "does not pay", "not enough data"
COMPARE = "compare with the framework's own ops: dvm run --advise"

OWN = ("record", "fuse", "tile", "encode", "bind", "dispatch")  # phases the kernels would not need
COMPILE = ("fuse", "tile", "encode")
ENOUGH = 20  # launches to judge by
COMPARED = 5  # calls of each kind to compare by
DIFFERENCE, ESTIMATED_DIFFERENCE = 1.1, 2.0  # ratios that count as faster


@dataclass(frozen=True)
class Facts:
    """Of one captured function. Times in microseconds."""

    launches: int = 0
    instructions: int = 0  # run, in all launches
    shapes: int = 0  # sets of shapes that differ
    changes: int = 0  # launches with other shapes than the one before
    hits: int = 0
    misses: int = 0
    own_us: float = 0.0  # in all launches
    compile_us: float = 0.0  # of it, compiling
    kernels_us: float = 0.0
    waiting_us: float = 0.0
    fallbacks: Mapping[str, int] = field(default_factory=dict)
    traces: int = 0
    untraceable: str = ""
    captured_us: float | None = None  # a call; a quarter of those timed took no longer, since other work on the machine only adds
    framework_us: float | None = None  # the same by the framework's own ops
    how: str = ""  # "measured", "estimated"
    compared: int = 0  # calls of each kind
    uncompared: str = ""  # why it was not measured

    @property
    def size(self) -> float:
        """Instructions of a launch."""
        return self.instructions / max(self.launches, 1)

    @property
    def own(self) -> float:
        """Share of the VM's own work in the time it spends."""
        return self.own_us / max(self.own_us + self.kernels_us, 1e-9)

    @property
    def changing(self) -> float:
        """Share of launches with other shapes than at the one before. (The first launch has none before it.)"""
        return max(self.changes - 1, 0) / max(self.launches, 1)

    @property
    def ran_elsewhere(self) -> int:
        """Ops that the framework ran in the middle of the function."""
        return sum(self.fallbacks.values())

    @property
    def ratio(self) -> float:
        """The framework's time over ours; 0: not known."""
        known = self.captured_us and self.framework_us and (self.how == "estimated" or self.compared >= COMPARED)
        return self.framework_us / self.captured_us if known and self.framework_us and self.captured_us else 0.0

    @property
    def miss_us(self) -> float:
        """What making code for new shapes takes."""
        return self.compile_us / max(self.misses, 1)


class Rule(NamedTuple):
    """`why` and `do` are formatted with the facts as `f`."""

    name: str
    holds: Callable[[Facts], bool]
    verdict: str
    why: str
    do: str


RULES = (
    Rule("few", lambda f: f.launches < ENOUGH, UNKNOWN, "{launched} too few to judge by", "let it run longer"),
    Rule("slower", lambda f: f.how == "measured" and 0 < f.ratio < 1 / DIFFERENCE, NOT,
         "{both} ({f.compared} calls each, in turn)",
         "leave @dvm.jit off this function, or capture a larger one around it"),
    Rule("faster", lambda f: f.how == "measured" and f.ratio > DIFFERENCE, PAYS,
         "{both} ({f.compared} calls each, in turn)",
         "keep it captured"),
    Rule("same", lambda f: f.how == "measured" and f.ratio > 0, NOT,
         "{both}: no difference to speak of",
         "keep it captured where you want to debug it; time is no reason"),
    Rule("fallbacks", lambda f: 2 * f.ran_elsewhere >= f.launches, NOT,
         "{f.ran_elsewhere} times the framework ran an op in the middle ({ops}), and what was fused ended there",
         "move these ops out of the captured function, or write them with others"),
    Rule("slower, estimated", lambda f: f.how == "estimated" and 0 < f.ratio < 1 / ESTIMATED_DIFFERENCE, UNKNOWN,
         "{both}, by an estimate from their number",
         "try the function without @dvm.jit and compare"),
    Rule("faster, estimated", lambda f: f.how == "estimated" and f.ratio > ESTIMATED_DIFFERENCE, PAYS,
         "{both}, by an estimate from their number",
         "keep it captured"),
    Rule("small", lambda f: f.own > 0.6 and f.kernels_us < 10 * f.launches, NOT,
         "{f.own:.0%} of the time is the VM's own work: kernels take {kernels:.1f} µs a launch, too little for what a launch costs",
         "capture more at once, use larger batches, or mode=\"graph\", which does not record"),
    Rule("changing", lambda f: f.changing >= 0.1 and f.shapes > 4, PAYS,
         "{f.shapes} sets of shapes, other ones than at the launch before in {f.changing:.0%} of {f.launches} launches: {ready}; "
         "own work is {f.own:.0%} of the time",
         "keep it captured"),
    Rule("single", lambda f: f.size < 2, NOT,
         "{f.size:.1f} instructions a launch: there is nothing to fuse",
         "capture a larger function around it, or leave it to the framework"),
    Rule("fused", lambda f: f.own < 0.3 and f.size >= 4, PAYS,
         "{f.size:.0f} instructions a launch in fused code, and own work is {f.own:.0%} of the time",
         "keep it captured"),
    Rule("fixed", lambda f: f.changing < 0.1, UNKNOWN,
         "shapes stay the same and own work is {f.own:.0%} of the time: a compiler for fixed shapes may do as well",
         COMPARE),
    Rule("else", lambda f: True, UNKNOWN,
         "nothing speaks clearly for or against it",
         COMPARE),
)


class Note(NamedTuple):
    """Of what is worth knowing whatever the verdict is."""

    holds: Callable[[Facts], bool]
    text: str


NOTES = (
    Note(lambda f: f.traces > 8 and f.traces > 0.2 * f.launches,
         "it was traced {f.traces} times: mode=\"stream\" suits arguments that keep changing"),
    Note(lambda f: bool(f.untraceable) and f.own > 0.3, "it cannot run without its Python body: {f.untraceable}"),
    Note(lambda f: f.compile_us > 0.1 * (f.own_us + f.kernels_us) and f.misses > 20,
         "{compiling:.0%} of the time is compiling for new shapes: dvm run --warm FILE remembers them"),
    Note(lambda f: f.waiting_us > 0.2 * (f.own_us + f.kernels_us + f.waiting_us), "{waiting:.0%} of the time is waiting for threads"),
    Note(lambda f: 0 < 2 * f.ran_elsewhere < f.launches, "the framework ran {ops}"),
    Note(lambda f: bool(f.uncompared), "not compared with the framework's own ops: {f.uncompared}"),
)


@dataclass(frozen=True)
class Advice:
    """`rule`: the name of the one that held."""

    verdict: str
    why: str
    do: str
    rule: str
    notes: tuple[str, ...]
    facts: Facts

    def told(self) -> dict[str, Any]:
        """As plain data."""
        return {"verdict": self.verdict, "why": self.why, "do": self.do, "rule": self.rule, "notes": list(self.notes),
                "figures": {**asdict(self.facts), "own_share": self.facts.own, "changing_share": self.facts.changing}}


def advise(facts: Facts, rules: tuple[Rule, ...] = RULES) -> Advice:
    """The verdict of the first rule that holds, and every note that does."""
    spent = max(facts.own_us + facts.kernels_us + facts.waiting_us, 1e-9)
    both = ""
    if facts.captured_us is not None and facts.framework_us is not None:
        both = f"a call takes {facts.captured_us:.0f} µs captured and {facts.framework_us:.0f} µs with the framework's own ops"
    most = sorted(facts.fallbacks.items(), key=lambda item: -item[1])[:3]
    words = {"f": facts, "both": both, "ops": ", ".join(f"{op} {count} ×" for op, count in most),
             "launched": "one launch is" if facts.launches == 1 else f"{facts.launches} launches are", "ready": _ready(facts),
             "kernels": facts.kernels_us / max(facts.launches, 1),
             "compiling": facts.compile_us / spent, "waiting": facts.waiting_us / spent}
    rule = next(rule for rule in rules if rule.holds(facts))
    notes = tuple(note.text.format(**words) for note in NOTES if note.holds(facts))
    return Advice(rule.verdict, rule.why.format(**words), rule.do.format(**words), rule.name, notes, facts)


def _ready(facts: Facts) -> str:
    if not facts.misses:
        return "code was always ready"
    which = "the other" if facts.misses == 1 else f"each of the {facts.misses} others"
    return f"code was ready for {facts.hits}, and made in {facts.miss_us:.0f} µs for {which}"


def facts_of(counted: Mapping[str, Any], seen: Any = None, dispatch_us: float = 0.0) -> Facts:
    """counted: its entry of `dvm.stats()["functions"]`; seen: of frontends.observed; dispatch_us: what the framework needs for an op."""
    times = counted["time_us"]
    known: dict[str, Any] = {
        "launches": counted["launches"], "instructions": counted["instructions"],
        "shapes": counted["shapes"], "changes": counted["shape_changes"],
        "hits": counted["selector_hits"], "misses": counted["selector_misses"],
        "own_us": sum(times[p] for p in OWN), "compile_us": sum(times[p] for p in COMPILE),
        "kernels_us": times["kernels"], "waiting_us": times["waiting"]}
    if seen is not None:
        known |= {"fallbacks": dict(seen.fallbacks), "traces": seen.traces}
        known |= {"untraceable": seen.untraceable, "uncompared": seen.uncompared}
        if seen.captured:
            known["captured_us"] = _quarter(seen.captured)
        if seen.native:
            known |= {"framework_us": _quarter(seen.native), "how": "measured", "compared": min(len(seen.native), len(seen.captured))}
        elif seen.captured and dispatch_us and seen.recordings:
            kernels = times["kernels"] / max(seen.calls, 1) / (3 if seen.gradients else 1)  # a backward is about twice its forward
            known |= {"framework_us": dispatch_us * seen.operations / seen.recordings + kernels, "how": "estimated"}
    return Facts(**known)


def _quarter(times: list[float]) -> float:
    return sorted(times)[len(times) // 4]


def of(stats: Mapping[str, Any]) -> dict[str, Advice]:
    """Advice for every captured function of `dvm.stats()` that was launched."""
    from .frontends import observed, sampling

    seen, dispatch_us = observed.functions(), sampling.dispatch_us()
    return {name: advise(facts_of(counted, seen[name], dispatch_us))
            for name, counted in stats["functions"].items() if counted["launches"] and name in seen}


def text(advice: Mapping[str, Advice], compared: bool = False) -> str:
    """A table: a line per function, what takes most time first, and below each why, what to do and what else is known.

    compared: it is of a `dvm run --advise`, which is not advised again.
    """
    found = sorted(advice.items(), key=lambda item: -(item[1].facts.own_us + item[1].facts.kernels_us))
    width = max([len("function"), *(len(name) for name, _ in found)])
    verdicts = max(len(verdict) for verdict in (PAYS, NOT, UNKNOWN))
    lines = [f"{'function':<{width}} {'verdict':<{verdicts}} {'launches':>9} {'shapes':>7} {'changing':>9} {'own':>6} "
             f"{'ours':>10} {'framework':>11}"]
    for name, a in found:
        f = a.facts
        ours = f"{f.captured_us:.1f} µs" if f.captured_us is not None else "-"
        theirs = f"{'~' if f.how == 'estimated' else ''}{f.framework_us:.1f} µs" if f.framework_us is not None else "-"
        lines.append(f"{name:<{width}} {a.verdict:<{verdicts}} {f.launches:>9} {f.shapes:>7} {f.changing:>9.0%} {f.own:>6.0%} "
                     f"{ours:>10} {theirs:>11}")
        lines += [f"    {line}" for line in (a.why, *[f"→ {a.do}"] * (not compared or a.do != COMPARE), *a.notes)]
    return "\n".join(lines)

