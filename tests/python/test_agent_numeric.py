"""Numeric filters: conditions over the statistics of every result, over a real socket."""
# ruff: noqa: F811 - fixtures are named as what they are imported as
import numpy as np
import pytest
from agent_harness import Refused, Running, adapter  # noqa: F401 - the fixture among them
from agent_stop_kit import LINE_H, LINE_S, LINE_Y, Capture, X, model, op, same, source  # noqa: F401 - the fixtures among them

from dvm_core import _core
from dvm_core.agent import numeric
from dvm_core.agent.evaluate import Refused as NotMeant


def set_to(adapter, **conditions):
    assert adapter.request("filters", conditions=conditions) == {"refused": {}}


def stopped(adapter, program):
    stop = adapter.event("vmstop")
    adapter.request("go")
    program.join()
    return stop["reason"], stop["FRAME"]["opcode"], stop["text"]


CASES = [  # filter, condition, the input, where it stops, what is said
    ("range", "", 6.0, "EXP",
     "range: EXP made s, f32[3,4]: abs_max 1.63e+05; the largest magnitude is 162754.8 at [0, 0]; the condition is abs_max > 65504"),
    ("range", "max - min > 1 and op == 'DIV'", None, "DIV", ""),
    ("range", "gradient and abs_mean > 0", None, "MUL", "range: MUL made grad(s)"),
    ("range", "'grad' in name and std > 0", None, "MUL", "range: MUL made grad(s)"),
    ("range", "log(abs(mean)) > 2 and abs(-max) < 99", None, "EXP", "range: EXP made s"),
    ("range", "op in ('DIV', 'TANH')", None, "DIV", "range: DIV made y"),
    ("range", "activation and not (op == 'MUL' or op == 'EXP')", None, "DIV", ""),
    ("zeros", "", 0.0, "", ""),
    ("zeros", "zeros == 1", 0.0, "MUL", "zeros: MUL made h, f32[3,4]: zeros 1; the condition is zeros == 1"),
    ("overflow", "", 100.0, "EXP",
     "overflow: EXP made s, f32[3,4]: nan 0, inf 12; the condition is (inf > 0 or nan > 0) and finite_operands"),
    ("nan", "op == 'DIV'", float("nan"), "DIV", "nan: DIV made y, f32[3,4]: nan 12; the condition is op == 'DIV'"),
    ("range", "weight and max > 3", 6.0, "MUL", "range: the weight x, f32[3,4]: max 6; the largest magnitude is 6.0 at [0, 0]"),
]


@pytest.mark.parametrize(("name", "condition", "value", "where", "text"), CASES)
def test_a_filter_stops_at_the_first_result_that_meets_its_condition(adapter, name, condition, value, where, text):
    x = X.copy() if value is None else np.full_like(X, value)
    set_to(adapter, **{name: condition})
    try:
        program = Running(model, x)
        if not where:
            program.join()
            adapter.none("vmstop", 0.1)
            return
        reason, opcode, why = stopped(adapter, program)
        assert (reason, opcode) == (name, where)
        assert text in why
    finally:
        set_to(adapter)


def test_steps_from_a_filter_lead_through_what_was_computed(adapter):
    set_to(adapter, overflow="")
    try:
        program = Running(model, np.full_like(X, 100.0))
        stop = adapter.event("vmstop")["FRAME"]
        opcodes = [stop["opcode"]]
        for _ in range(stop["instruction"] + 1, stop["instructions"]):
            adapter.request("step", kind="instruction")
            told = adapter.event("vmstop")
            assert told["reason"] == "step"
            opcodes.append(told["FRAME"]["opcode"])
        adapter.request("step", kind="instruction")
        adapter.event("vmdone")
        adapter.request("go")
        program.join()
        assert opcodes[:2] == ["EXP", "DIV"]
    finally:
        set_to(adapter)


def test_infinite_inputs_are_no_overflow_but_what_finite_ones_make_is(adapter):
    x = X.copy()
    x[1, 1] = np.inf
    set_to(adapter, overflow="")
    Running(model, x).join()
    adapter.none("vmstop", 0.1)
    x = X.copy()
    x[2, 3] = 0
    assert stopped(adapter, Running(model, x))[:2] == ("overflow", "DIV")
    set_to(adapter)


def test_of_several_filters_the_first_result_in_program_order_is_told(adapter):
    set_to(adapter, zeros="op == 'DIV'", range="op == 'EXP'")
    assert stopped(adapter, Running(model, X))[:2] == ("range", "EXP")
    set_to(adapter)


def test_each_filter_looks_as_often_as_it_says(adapter):  # noqa: F811
    set_to(adapter, range="op == 'EXP' every 4", zeros="op == 'MUL' and zeros < 2 every 6")
    told = []
    for _ in range(12):
        told.append("")
        program = Running(model, X)
        while program.thread.is_alive():
            if stops := [e for e in adapter.events if e["ev"] == "vmstop"]:
                adapter.events.remove(stops[0])
                told[-1] = stops[0]["reason"]
                adapter.request("go")
            program.thread.join(0.01)
        program.join()
    # The first launch is looked at by both, and MUL comes first.
    assert told == ["zeros", "", "", "", "range", "", "zeros", "", "range", "", "", ""]
    set_to(adapter)


@pytest.mark.parametrize(("name", "condition", "why"), [
    ("range", "nope > 1", "no `nope` here; a condition is over count, zeros"), ("range", "max >", "not an expression"),
    ("odd", "", "there is no filter 'odd'"), ("zeros", "__import__('os')", "no `__import__` here"), ("range", "name + 1", ""),
    ("range", "(max, min)", "neither true nor false"), ("range", "max > 1 every 0", "every 0"), ("range", "op", "neither true nor false"),
    ("zeros", "op < 3", "not supported between instances of 'str' and 'int'"), ("range", " " * 20_000, "20,000 characters"),
])
def test_a_condition_that_cannot_be_meant_is_refused_and_the_others_stay(adapter, name, condition, why):
    answer = adapter.request("filters", conditions={name: condition, "nan": ""})
    assert list(answer["refused"]) == [name]
    assert why in answer["refused"][name]
    x = X.copy()
    x[0, 0] = np.nan
    assert stopped(adapter, Running(model, x))[:2] == ("nan", "MUL")
    set_to(adapter)


def test_conditions_are_texts(adapter):
    with pytest.raises(Refused, match="a filter's condition is a text"):
        adapter.request("filters", conditions={"nan": 3})


def test_measured_results_keep_their_bits(adapter):
    plain = model(X)
    set_to(adapter, range="abs_max > 1e30", overflow="", zeros="", unchanged="", diverged="error > 1")
    assert same(model(X), plain)
    set_to(adapter)
    assert same(model(X), plain)


def test_all_eighteen_conditions_of_mindinsight_can_be_said():
    for name, text in numeric.MINDINSIGHT.values():
        numeric.Condition.of(name, text)
    assert len(numeric.MINDINSIGHT) == 18


def test_a_filter_without_a_condition_is_checked_in_the_core_alone():
    filters = numeric.Numeric(print)
    filters.set([numeric.Condition.of("nan", ""), numeric.Condition.of("inf", "")])
    assert filters.conditions == []
    filters.set([])


def test_statistics_of_the_core_have_the_mean_magnitude():
    x = np.array([[-3.0, 1.0], [np.nan, 2.0]], np.float32)
    assert _core.stats_of(x)["abs_mean"] == 2.0
    rng = np.random.default_rng(5)
    for dtype in (np.float32, np.float16, np.float64, np.int32):
        x = (rng.standard_normal(5000) * 50).astype(dtype)
        assert _core.stats_of(x)["abs_mean"] == pytest.approx(np.abs(x.astype(np.float64)).mean(), rel=1e-12)
    with pytest.raises(NotMeant):
        numeric.Condition.of("range", "count >")


class Steps:
    """Two launches a step that read one weight, as a training loop makes them."""

    def __init__(self):
        self.weight = np.linspace(0.5, 2, 6, dtype=np.float32).reshape(2, 3)
        self.x = np.ones((2, 3), np.float32)
        self.step = 0

    def __call__(self, add=0.0):
        self.step += 1
        self.weight += np.float32(add)
        for _ in range(2):
            with Capture("steps") as c:
                c.graph.step = self.step
                w, x = c.input(self.weight), c.graph.input(self.x.ctypes.data, self.x.shape, 1, None, self.x, "")
                y = c.add("MUL", (w, x), LINE_H, called="y")
                c.graph.flush(keep=[y])


@pytest.mark.parametrize(("condition", "changes", "told"), [
    ("", (0, 0.1, 0.1, 0.0), "unchanged: the weight %i0, f32[2,3]: has not changed since step 3; the condition is same"),
    ("change > 0.5", (0, 0.1, 0.1, 3.0), "change "),
    ("change < 1e-3", (0, 0.1, 0.1, 1e-4), "change "),
])
def test_a_weight_is_compared_with_the_step_before_not_with_the_launch_before(adapter, condition, changes, told):
    set_to(adapter, unchanged=condition)
    steps = Steps()
    for add in changes[:-1]:
        Running(steps, add).join()
    adapter.none("vmstop", 0.1)
    program = Running(steps, changes[-1])
    first = adapter.event("vmstop")
    assert told in first["text"]
    assert first["FRAME"]["opcode"] == "MUL"
    adapter.request("go")
    assert told in adapter.event("vmstop")["text"]  # the step's second launch reads it, too
    adapter.request("go")
    program.join()
    set_to(adapter)


def test_a_weight_of_nan_alone_is_not_one_that_does_not_learn(adapter):
    set_to(adapter, unchanged="")
    steps = Steps()
    steps.weight[:] = np.nan
    for _ in range(3):
        Running(steps).join()
    adapter.none("vmstop", 0.1)
    set_to(adapter)


def test_where_a_condition_has_no_figures_it_is_told_alone(adapter):
    set_to(adapter, range="op == 'EXP'")
    assert stopped(adapter, Running(model, X))[2] == "range: EXP made s, f32[3,4]; the condition is op == 'EXP'"
    set_to(adapter)


def test_what_float32_loses_is_found_where_it_is_lost(adapter):
    x = np.array([[0.25, 1.5, 3.1]], np.float32)

    def variance():  # E[x*x] - E[x]**2 of numbers far from zero
        with Capture("variance") as c:
            v = c.input(x + 4096)
            square, mean = (c.graph.op(op("MEAN"), (t,), attrs=(1, 1)) for t in (c.add("MUL", (v, v), LINE_H, called="square"), v))
            other = c.add("MUL", (mean, mean), LINE_S, called="other")
            result = c.add("SUB", (square, other), LINE_Y, called="variance")
            c.graph.flush(keep=[result])

    set_to(adapter, diverged="")
    reason, opcode, text = stopped(adapter, Running(variance))
    assert (reason, opcode) == ("diverged", "SUB")
    assert text.startswith("diverged: SUB made variance, f32[1,1]: error ")
    set_to(adapter)


def test_every_op_with_a_reference_follows_float64(adapter):
    set_to(adapter, diverged="")
    rng = np.random.default_rng(3)
    x, w = rng.standard_normal((5, 8)).astype(np.float32), rng.standard_normal((8, 4)).astype(np.float32)

    def run():
        with Capture("many") as c:
            a, b = c.input(x), c.input(w)
            y = c.graph.op(op("MATMUL"), (a, b), attrs=(0, 0))
            y = c.graph.op(op("TANH"), (y,))
            big = c.graph.op(op("GREATER"), (y, -1), imms=(0.0,))
            y = c.graph.op(op("SELECT"), (big, y, y))
            y = c.graph.op(op("TRANSPOSE"), (y,), attrs=(1, 0))
            y = c.graph.op(op("SUM"), (y,), attrs=(0, 1))
            c.graph.flush(keep=[y])

    Running(run).join()
    adapter.none("vmstop", 0.1)
    set_to(adapter)


def test_a_condition_that_fails_on_a_launch_is_told_of_and_the_others_stay(adapter):  # noqa: F811
    set_to(adapter, zeros="op == 'SUB' and reshape(max, (2, 1)).sum() > 1e9", range="op == 'EXP'")
    assert stopped(adapter, Running(model, X))[:2] == ("range", "EXP")
    assert adapter.event("notice")["text"].startswith("the filter 'zeros' is off: `op == 'SUB' and reshape(max, (2, 1)).sum() > 1e9`: ")
    set_to(adapter)


def test_nan_is_no_yes(adapter):  # noqa: F811
    set_to(adapter, range="count % 0")
    Running(model, X).join()
    adapter.none("vmstop", 0.1)
    set_to(adapter)
