"""`dvm doctor --ops`: every op has cases and a reference, nothing is left unexplained, and what is wrong is said."""
from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from core_programs import Step
from core_programs import reference as other_reference

from dvm_core import _core
from dvm_core.opcheck import cases, check, modes, peers, reasons, reference, report, ulp

OPS = [name for name, *_ in _core.OPS]


@pytest.mark.parametrize("op", OPS)
def test_every_op_has_cases_and_a_reference(op):
    assert cases.known(op), f"{op} has no cases for `dvm doctor --ops`: add them in dvm_core/opcheck/cases.py"
    assert reference.known(op), f"{op} has no reference for `dvm doctor --ops`: add its formula in dvm_core/opcheck/reference.py"


@pytest.mark.parametrize("op", OPS)
def test_nothing_differs_without_a_reason(op):
    [row] = check.check([op], frameworks=False, levels=False)
    assert row.cases and not row.wrong, row.wrong


@pytest.mark.parametrize("level", [level for level in _core.simd_levels() if level != _core.simd_level()])
def test_no_simd_level_has_other_bits_without_a_reason(level):
    own, theirs = modes.own_digests(OPS), modes.digests_at(level, OPS)
    assert not [op for op in OPS if own[op] != theirs[op] and reasons.level_reason(level, op) is None]


@pytest.mark.parametrize("op", [op for op in OPS if op not in ("RANDOM", "POW")])
def test_the_reference_agrees_with_that_of_the_property_tests(op):
    """Two people's formulas: POW of integers to negative powers is refused by NumPy, RANDOM has a test file."""
    compared = 0
    for case in cases.cases(op):
        if "bfloat16" in (*case.dtypes, case.dtype):
            continue
        step = Step(case.op, case.operands, case.attrs, case.shape, 0, case.imms)
        got = modes.run(case, "alone")
        if got is None:
            continue
        operands = [cases.wide(a, name) for a, name in zip(case.inputs, case.dtypes, strict=True)]
        if case.immediate >= 0:
            operands.insert(case.immediate, np.asarray(case.imms[0]).astype(operands[0].dtype))
        with np.errstate(all="ignore"):
            mine = np.asarray(reference.of(case, operands))
            theirs = other_reference(step, list(case.inputs), got.dtype)
            mine = mine.astype(np.float64) if got.dtype.kind == "f" else mine.astype(got.dtype)
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12)
        compared += 1
    assert compared


def test_an_op_without_cases_or_reference_is_said(monkeypatch):
    monkeypatch.setitem(cases._CLASS, "NEWEST", "D")
    monkeypatch.setitem(cases.OPS, "NEWEST", 0xEE)
    [row] = check.check(["NEWEST"], levels=False)
    assert len(row.wrong) == 2 and "opcheck/cases.py" in row.wrong[0] and "opcheck/reference.py" in row.wrong[1]


def test_a_wrong_result_is_said_and_fails(monkeypatch, capsys):
    monkeypatch.setitem(reference._ELEMENTWISE, "ADD", np.maximum)
    assert report.report(["ADD", "SUB"], frameworks=False) == 1
    out = capsys.readouterr().out
    assert "not explained: float32: " in out and out.rstrip().endswith("2 ops; not explained: ADD")
    assert "ulp from NumPy, at most 0.5 is known" in out


def test_a_mode_or_level_with_other_bits_is_said(monkeypatch):
    real = modes.run

    def run(case, mode):
        array = real(case, mode)
        return -array if mode == "cut" and array is not None and array.dtype == np.float32 else array
    monkeypatch.setattr(modes, "run", run)
    monkeypatch.setattr(modes, "digests_at", lambda level, ops: {op: ["0"] * len(cases.cases(op)) for op in ops})
    [row] = check.check(["EXP"], frameworks=False)
    assert any("cut has other bits than alone" in wrong for wrong in row.wrong)
    if len(_core.simd_levels()) > 1:
        assert any("SIMD level" in wrong for wrong in row.wrong)


class Wrong(peers.Peer):
    """A framework whose result is one more."""

    def __init__(self) -> None:
        self.name, self.functions, self.installed = "wrong", {}, True

    def run(self, case):
        array = modes.run(case, "alone")
        return None if array is None or "bfloat16" in case.dtypes else array.astype(np.float64) + 1


def test_a_framework_with_another_rule_needs_a_reason(monkeypatch):
    monkeypatch.setattr(check, "PEERS", (Wrong(),))
    [row] = check.check(["FLOOR"], levels=False)
    assert any("wrong is" in wrong for wrong in row.wrong) and row.peers["wrong"] > 8
    monkeypatch.setattr(reasons, "_PEERS", (("wrong", "FLOOR", "", "counts from one"),))
    [row] = check.check(["FLOOR"], levels=False)
    assert not row.wrong and "wrong: counts from one" in row.why


@pytest.mark.parametrize("name", [peer.name for peer in peers.PEERS])
def test_frameworks_differ_for_known_reasons_only(name, monkeypatch):
    found = [peer for peer in peers.PEERS if peer.name == name]
    if not found[0].installed:
        pytest.skip(f"{name} is not installed")
    monkeypatch.setattr(check, "PEERS", tuple(found))
    rows = check.check(["ADD", "MUL", "DIV", "MAXIMUM", "EXP", "TANH", "SUM", "MAX", "MEAN", "MATMUL", "SIGN", "SELECT"], levels=False)
    assert not [wrong for row in rows for wrong in row.wrong]
    assert all(name in row.peers for row in rows)


def test_differences_are_counted_in_units_of_the_last_place():
    one = np.array([1.0])
    for dtype, step in (("float32", 2.0**-23), ("float16", 2.0**-10), ("bfloat16", 2.0**-7), ("float64", 2.0**-52)):
        assert ulp.largest(one + 3 * step, one, dtype) == 3
    tiny = np.array([2.0**-149])
    assert ulp.largest(2 * tiny, tiny, "float32") == 1  # denormal
    nan, inf = np.array([np.nan]), np.array([np.inf])
    assert ulp.largest(nan, nan, "float32") == ulp.largest(inf, inf, "float32") == ulp.largest(inf, np.array([1e39]), "float32") == 0
    assert ulp.largest(nan, one, "float32") == ulp.largest(inf, one, "float32") == ulp.largest(-inf, inf, "float32") == np.inf
    assert ulp.largest(np.array([1, 2]), np.array([1, 3]), "int32") == np.inf
    assert ulp.largest(one + 1, one, "float32", scale=np.array([2.0**23])) == 1


def test_the_command_prints_a_line_per_op():
    done = subprocess.run([sys.executable, "-m", "dvm_core", "doctor", "--ops", "neg", "add"], capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line.split()[0] for line in lines[:3]] == ["op", "NEG", "ADD"] and lines[-1] == "2 ops, all differences explained"
    wrong = subprocess.run([sys.executable, "-m", "dvm_core", "doctor", "--ops", "foo"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 1 and "there is no op FOO; there are ADD" in wrong.stderr


def test_a_framework_that_is_not_installed_is_named(monkeypatch, capsys):
    monkeypatch.setattr("dvm_core.opcheck.report.PEERS", [SimpleNamespace(name="torch", installed=False)])
    assert report.report(["NEG"]) == 0
    assert "torch not installed: not compared\n" in capsys.readouterr().out
