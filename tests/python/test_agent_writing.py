"""Writes to tensors at a stop, and data breakpoints: who reads the tensor afterwards reads what was written."""
# ruff: noqa: F811 - fixtures are named as what they are imported as
import base64

import numpy as np
import pytest
from agent_harness import Refused, Running, adapter  # noqa: F401 - the fixture among them
from agent_stop_kit import LINE_S, LINE_Y, Capture, X, breakpoint_on, model, same, source  # noqa: F401 - the fixtures among them

from dvm_core import dtypes
from dvm_core.agent import writing
from dvm_core.agent.commands import CommandError
from dvm_core.agent.writing import converted


def stopped_backward(adapter, x):
    breakpoint_on(adapter, LINE_S)
    program = Running(model, x)
    adapter.event("vmstop")
    return program, {t["name"]: t for t in adapter.request("tensors")["tensors"]}


def test_an_element_written_at_a_stop_is_what_the_rest_of_the_program_reads(adapter):
    program, tensors = stopped_backward(adapter, X.copy())
    told = adapter.request("write", ref=tensors["s"]["ref"], index=[1, 2], value="0.5")
    assert told["values"] == ["0.5"] and tensors["s"]["ref"] in told["tensor"]["touched"]
    adapter.request("assign", expression="y[2, 1:3]", value="[7, 8]")
    adapter.request("go")
    y, gx, _ = program.join()
    s = np.exp(X * 2)
    s[1, 2] = 0.5
    expected = np.exp(X * 2) / X
    expected[2, 1:3] = 7, 8
    np.testing.assert_array_equal(y[2, 1:3], [7, 8])
    np.testing.assert_allclose(gx, expected * s * 2, rtol=1e-5)


def test_bytes_and_whole_tensors(adapter):
    program, tensors = stopped_backward(adapter, X.copy())
    data = np.array([3.0], np.float32).tobytes()
    assert adapter.request("writeMemory", ref=tensors["s"]["ref"], offset=4, data=base64.b64encode(data).decode())["written"] == 4
    assert adapter.request("evaluate", expression="s[0, 1]")["result"] == "3.0"
    assert adapter.request("writeMemory", ref=tensors["s"]["ref"], offset=46, data=base64.b64encode(b"\0" * 8).decode())["written"] == 2
    adapter.request("assign", expression="s", value="s * 0 + 2")
    told = adapter.request("tensor", ref=tensors["s"]["ref"], maxBytes=0)
    assert (told["stats"]["min"], told["stats"]["max"]) == (2, 2)
    adapter.request("go")
    program.join()


@pytest.mark.parametrize("expression, value, why", [
    ("s", "'text'", "must be a number"), ("s[9, 0]", "1", "does not fit s of shape"), ("s[0]", "[1, 2]", "does not fit"),
    ("s + 1", "1", "is no tensor of this stop"), ("nothing[0]", "1", "no tensor `nothing` here"), ("s", "open('x')", "is not called"),
    ("grad(s)", "1", "not yet computed"), ("s[x", "1", "is no tensor of this stop"),
])
def test_what_cannot_be_written_says_why(adapter, expression, value, why):
    program, _ = stopped_backward(adapter, X.copy())
    with pytest.raises(Refused, match=why.replace("(", r"\(")):
        adapter.request("assign", expression=expression, value=value)
    adapter.request("breakpoints", lines=[])
    adapter.request("go")
    assert same(program.join(), model(X))


def test_values_by_number_inside_expressions(adapter):
    program, tensors = stopped_backward(adapter, X.copy())
    whole = float(adapter.request("evaluate", expression="%2.max()")["result"])
    assert abs(whole - float(np.exp(X * 2).max())) < 1e-4
    assert adapter.request("evaluate", expression="7 %4 + len('%2')")["result"] == "5"
    assert adapter.request("evaluate", expression="(%i0 - %i0).sum() == 0")["result"] == "True"
    adapter.request("go")
    program.join()


def test_a_read_only_mapping_is_not_written(adapter, tmp_path):
    X.tofile(tmp_path / "x")
    mapped = np.memmap(tmp_path / "x", np.float32, "r", shape=X.shape)
    program, tensors = stopped_backward(adapter, mapped)
    with pytest.raises(Refused, match="read only"):
        adapter.request("assign", expression="%i0[0, 0]", value="1")
    adapter.request("go")
    program.join()


def data_on(adapter, name, **more):
    told = adapter.request("dataInfo", name=name)["data"]
    return adapter.request("dataBreakpoints", items=[{"id": 9, **told, **more}])["results"][0]


def test_a_value_stops_where_it_is_written_and_where_it_changes(adapter):
    program, _ = stopped_backward(adapter, X.copy())
    assert data_on(adapter, "s")["verified"]
    adapter.request("breakpoints", lines=[])
    adapter.request("go")
    program.join()
    program = Running(model, X.copy())
    stop = adapter.event("vmstop")
    assert (stop["reason"], stop["bp"], stop["text"]) == ("data", [9], "s was written by EXP")
    assert stop["FRAME"]["line"] == LINE_Y
    told = {t["name"]: t for t in adapter.request("tensors")["tensors"]}
    assert told["s"]["computed"] and not told["y"]["computed"]
    data_on(adapter, "s[0, 1]", condition="changed")
    adapter.request("go")
    first = program.join()
    assert same(first, Running(model, X.copy()).join())  # the same again: no stop
    program = Running(model, np.where(np.arange(12).reshape(3, 4) == 1, X, X * 2).astype(np.float32))
    program.join()  # another element
    program = Running(model, (X * 2).astype(np.float32))
    stop = adapter.event("vmstop")
    assert stop["text"].startswith("s[0, 1] was written by EXP: 1 of 1 elements")
    adapter.request("dataBreakpoints", items=[])
    adapter.request("go")
    program.join()
    assert same(model(X), first)


def test_a_condition_on_what_is_written(adapter):
    program, _ = stopped_backward(adapter, X.copy())
    data_on(adapter, "s", condition="nan > 0 or isinf(value).any()")
    adapter.request("breakpoints", lines=[])
    adapter.request("go")
    program.join()
    model(X)
    adapter.none("vmstop", 0.1)
    bad = X.copy()
    bad[1, 1] = np.nan
    program = Running(model, bad)
    assert adapter.event("vmstop")["reason"] == "data"
    adapter.request("step", kind="line")
    assert adapter.event("vmstop")["reason"] == "step"
    adapter.request("go")
    program.join()


def test_a_condition_that_is_none_is_refused_by_the_agent_too(adapter):
    model(X)
    assert "is not an expression" in breakpoint_on(adapter, LINE_S, condition="s >")["message"]
    assert breakpoint_on(adapter, LINE_S, condition="%2.max() > 3")["verified"]


def test_two_functions_each_with_an_input_of_that_name_are_not_compared(adapter):
    def other(x):
        with Capture("other") as c:
            v = c.input(x)
            y = c.add("MUL", (v, -1), LINE_Y, imms=(3.0,), called="y")
            c.graph.flush(keep=[y])
            return c.graph.array(y).copy()

    program, _ = stopped_backward(adapter, X.copy())
    told = adapter.request("dataInfo", name="x")["data"]
    assert told["program"] == "forward"
    every = {name: value for name, value in told.items() if name != "program"}
    adapter.request("dataBreakpoints", items=[{"id": 9, **told}, {"id": 10, **every}])  # the second: of any function
    adapter.request("breakpoints", lines=[])
    adapter.request("go")
    program.join()
    for _ in range(2):
        Running(model, X.copy()).join()  # a stop would keep it from ending
        Running(other, X * 5).join()
    program = Running(other, X * 6)
    assert adapter.event("vmstop")["bp"] == [10]
    adapter.request("go")
    program.join()
    program = Running(model, (X * 2).astype(np.float32))
    stop = adapter.event("vmstop")
    assert stop["bp"] == [9, 10] and stop["text"].startswith("x was written since the launch before: 12 of 12")
    adapter.request("dataBreakpoints", items=[])
    adapter.request("go")
    program.join()


@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_floats_past_the_end_of_an_integer_dtype_are_refused(name):
    code = next((entry.code for entry in dtypes.BY_CODE.values() if entry.name == name), None)
    if code is None:
        pytest.skip(f"no dtype {name}")
    info = np.iinfo(name)
    inside = np.nextafter(float(info.max) + 1, 0) if info.bits == 64 else float(info.max)
    assert int(converted(inside, code, "it")) == int(inside) and int(converted(float(info.min), code, "it")) == info.min
    for outside in (float(2 ** (info.bits - (info.min < 0))), np.float32(2 ** (info.bits - (info.min < 0))),
                    float(info.min) * 1.5 - 1, float("inf"), float("nan")):
        with pytest.raises(CommandError, match="holds whole numbers"):
            converted(outside, code, "it")


def test_without_a_table_of_pages_the_array_says_whether_it_is_written(monkeypatch):
    def missing(*arguments, **more):
        raise FileNotFoundError
    monkeypatch.setattr(writing, "open", missing, raising=False)
    array = np.ones(3, np.float32)
    assert writing._pages_writable(array)
    array.flags.writeable = False
    assert not writing._pages_writable(array)


@pytest.mark.parametrize(("part", "why"), [
    ("s[99]", "does not fit the shape"), ("s[::0]", "step cannot be zero"), ("s[3:3]", "no element"),
    ("s[0, 1, 2]", "does not fit the shape"),
])
def test_a_data_breakpoint_on_a_part_that_there_is_not_is_refused(adapter, part, why):
    program, _ = stopped_backward(adapter, X.copy())
    with pytest.raises(Refused, match=why):
        adapter.request("dataInfo", name=part)
    info = adapter.request("dataInfo", name="s[0]")["data"]
    (answer,) = adapter.request("dataBreakpoints", items=[{"id": 9, **info, "part": part[2:-1]}])["results"]
    assert answer["verified"] is False and why in answer["message"]
    adapter.request("dataBreakpoints", items=[])
    adapter.request("breakpoints", lines=[])
    adapter.request("go")
    program.join()


def test_words_for_numbers_inside_lists(adapter):
    program, _ = stopped_backward(adapter, X.copy())
    adapter.request("assign", expression="s[0]", value="[nan, -Infinity, inf, 1]")
    assert adapter.request("evaluate", expression="str(s[0].tolist())")["result"] == "[nan, -inf, inf, 1.0]"
    adapter.request("assign", expression="s[1, 0]", value="-infinity")
    assert adapter.request("evaluate", expression="s[1, 0]")["result"] == "-inf"
    with pytest.raises(Refused, match="no tensor `infinite` here"):
        adapter.request("assign", expression="s[0, 0]", value="[infinite]")
    adapter.request("breakpoints", lines=[])
    adapter.request("go")
    program.join()
