"""Whether the VM pays: rules over facts, what the facts are, and comparisons that leave no trace."""
from __future__ import annotations

import itertools
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dvm_core as dvm
from dvm_core import _core, advice
from dvm_core.advice import NOT, PAYS, RULES, UNKNOWN, Facts, advise
from dvm_core.frontends import observed
from dvm_core.frontends.observed import Observed

BUSY = Facts(launches=1000, instructions=12_000, shapes=1, changes=1, hits=999, misses=1, own_us=4000, compile_us=10, kernels_us=20_000)
COMPARED = replace(BUSY, captured_us=100.0, framework_us=100.0, how="measured", compared=16)

CASES = {
    "few": (replace(BUSY, launches=19), UNKNOWN),
    "slower": (replace(COMPARED, framework_us=80.0), NOT),
    "faster": (replace(COMPARED, framework_us=111.0), PAYS),
    "same": (replace(COMPARED, framework_us=95.0), NOT),
    "fallbacks": (replace(BUSY, fallbacks={"Svd": 400, "Erfinv": 150}), NOT),
    "slower, estimated": (replace(COMPARED, framework_us=49.0, how="estimated", compared=0), UNKNOWN),
    "faster, estimated": (replace(COMPARED, framework_us=201.0, how="estimated", compared=0), PAYS),
    "small": (replace(BUSY, kernels_us=2000), NOT),
    "changing": (replace(BUSY, shapes=120, changes=400), PAYS),
    "single": (replace(BUSY, instructions=1000), NOT),
    "fused": (BUSY, PAYS),
    "fixed": (replace(BUSY, own_us=10_000), UNKNOWN),
    "else": (replace(BUSY, own_us=10_000, shapes=3, changes=500), UNKNOWN),
}


@pytest.mark.parametrize("rule", CASES)
def test_each_rule_gives_its_verdict(rule):
    facts, verdict = CASES[rule]
    told = advise(facts)
    assert (told.rule, told.verdict) == (rule, verdict)
    assert told.why and told.do and "{" not in told.why + told.do


def test_every_rule_has_a_case_and_the_last_always_holds():
    assert [rule.name for rule in RULES] == list(CASES)
    assert RULES[-1].holds(Facts())


def test_words_say_what_is_counted():
    assert advise(replace(BUSY, launches=1)).why == "one launch is too few to judge by"
    told = advise(replace(BUSY, shapes=74, changes=389, launches=400, instructions=4800, hits=399, misses=1)).why
    assert "other ones than at the launch before in 97% of 400 launches: code was ready for 399, and made in 10 µs for the other;" in told
    assert "code was always ready" in advise(replace(BUSY, shapes=74, changes=389, misses=0)).why


def test_any_facts_have_one_verdict_in_words():
    numbers = (0, 1, 30, 10_000)
    for launches, instructions, shapes, own, kernels in itertools.product(numbers, repeat=5):
        for how, us in (("", None), ("measured", 0.0), ("measured", 7.0), ("estimated", 1e-9)):
            facts = Facts(launches=launches, instructions=instructions, shapes=shapes, changes=shapes, own_us=own, kernels_us=kernels,
                          captured_us=us, framework_us=us and 3.0, how=how, compared=9, fallbacks={"Svd": instructions})
            told = advise(facts)
            assert told.verdict in (PAYS, NOT, UNKNOWN) and told.why
            assert told.told()["figures"]["launches"] == launches
            assert advice.text({"f": told}).count("\n") >= 3


@pytest.mark.parametrize("facts, note", [
    (replace(BUSY, traces=300), 'it was traced 300 times: mode="stream" suits arguments that keep changing'),
    (replace(BUSY, own_us=9000, untraceable="it reads a value"), "it cannot run without its Python body: it reads a value"),
    (replace(BUSY, misses=500, compile_us=3120), "13% of the time is compiling for new shapes: dvm run --warm FILE remembers them"),
    (replace(BUSY, waiting_us=8000), "25% of the time is waiting for threads"),
    (replace(BUSY, fallbacks={"Svd": 3}), "the framework ran Svd 3 ×"),
    (replace(BUSY, uncompared="it calls print()"), "not compared with the framework's own ops: it calls print()"),
])
def test_what_else_is_known_is_told(facts, note):
    assert advise(facts).notes == (note,)
    assert advise(BUSY).notes == ()


def test_few_comparisons_are_none():
    assert advise(replace(COMPARED, framework_us=900.0, compared=4)).rule == "fused"


def test_facts_come_from_counters_and_samples():
    times = dict.fromkeys(("record", "fuse", "tile", "encode", "bind", "dispatch", "kernels", "waiting"), 1.0)
    counted = {"launches": 40, "instructions": 80, "selector_hits": 30, "selector_misses": 10, "shapes": 10, "shape_changes": 11,
               "time_us": times}
    facts = advice.facts_of(counted)
    assert (facts.own_us, facts.compile_us, facts.kernels_us, facts.waiting_us) == (6, 3, 1, 1)
    assert (facts.changing, facts.size, facts.how) == (0.25, 2, "")
    seen = Observed(recordings=10, operations=50, calls=10, captured=[9.0, 1.0, 5.0, 3.0])
    assert advice.facts_of(counted, seen).how == ""
    estimated = advice.facts_of(counted, seen, dispatch_us=2.0)
    assert (estimated.how, estimated.captured_us, estimated.framework_us) == ("estimated", 3.0, 10.1)
    seen.native += [8.0, 2.0, 6.0, 4.0, 90.0]
    measured = advice.facts_of(counted, seen, dispatch_us=2.0)
    assert (measured.how, measured.framework_us, measured.compared) == ("measured", 4.0, 4)


@dvm.jit
def growing(x):
    return (x * 2.0 + 1.0).softmax(-1)


def test_stats_advise_on_functions_of_arrays():
    for n in range(40):
        growing(dvm.tensor(np.ones((3, 4 + n % 8), np.float32)))
    told = dvm.stats()["advice"]["growing"]
    assert told["verdict"] in (PAYS, NOT, UNKNOWN) and told["why"] and told["do"]
    figures = told["figures"]
    assert (figures["launches"], figures["shapes"], figures["changes"], figures["misses"]) == (40, 8, 40, 8)
    assert figures["changing_share"] == 39 / 40
    (dvm.tensor(np.ones(3, np.float32)) * 2.0).numpy()  # captured by nobody
    assert "arrays" in dvm.stats()["functions"] and "arrays" not in dvm.stats()["advice"]


@dvm.jit(mode="graph")
def replayed(x):
    return x * 3.0


def test_replays_count_their_shapes():
    for n in (5, 5, 5, 6, 6, 5):
        replayed(dvm.tensor(np.ones(n, np.float32)))
    counted = _core.stats()["functions"]["replayed"]
    assert (counted["launches"], counted["shapes"], counted["shape_changes"]) == (6, 2, 3)
    assert observed.of("replayed").traces == 2


def test_names_without_end_share_an_entry(monkeypatch):
    monkeypatch.setattr(observed, "_functions", {})
    for n in range(3000):
        observed.of(f"f{n}").traces += 1
    assert len(observed.functions()) == 1025 and observed.of("f2999") is observed.of("(other functions)")


def test_a_run_that_compares_is_not_advised_to():
    for rule in ("fixed", "else"):
        found = {"step": advise(CASES[rule][0])}
        assert f"→ {advice.COMPARE}" in advice.text(found) and "→" not in advice.text(found, compared=True)
    assert "→ keep it captured" in advice.text({"step": advise(BUSY)}, compared=True)


def run(script: Path, *options: str) -> tuple[str, str]:
    done = subprocess.run([sys.executable, "-m", "dvm_core", "run", *options, str(script)], text=True, capture_output=True, check=True)
    return done.stdout, done.stderr


def test_the_command_line_prints_a_table(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent("""
        import numpy as np
        import dvm_core as dvm

        @dvm.jit
        def step(x):
            return x * 2.0 + 1.0

        for n in range(30):
            out = step(dvm.tensor(np.ones((n + 1, 8), np.float32)))
        print(out.numpy().sum())
        """))
    for options in (["--advise"], ["--stats"], ["--stats", "--advise"]):
        out, err = run(script, *options)
        assert out == "720.0\n"
        lines = err.splitlines()
        header = next(i for i, line in enumerate(lines) if line.split()[:2] == ["function", "verdict"])
        assert lines[header + 1].startswith("step ") and lines[header + 3].startswith("    → ")
        assert ("selector:" in err) == ("--stats" in options)
        assert ("dvm.tensor arrays have no other engine" in err) == ("--advise" in options)
