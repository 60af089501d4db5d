"""A file runs like the program it was written from: the same bits, after patching too."""

import numpy as np
import pytest

import dvm_core as dvm
from dvm_core import _core, msbc
from dvm_core.msbc import Code, Input, Instruction
from dvm_core.msbc.layout import CODES as OP

F32 = 1
rng = np.random.default_rng(5)


def f32(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def last_program():
    return next(program for program in reversed(dvm.programs()) if program.name.endswith("block"))


def captured():
    x, w = f32(12, 20), f32(20, 8)

    @dvm.jit
    def block(x, w):
        h = (x @ w + 0.5).tanh()
        p = h.softmax()
        return p, h.sum(0), h.T[1:5:2].reshape(-1), (h > 0).where(h, -1.0)

    return (x, w), [item.numpy() for item in block(dvm.tensor(x), dvm.tensor(w))]


def test_a_written_program_gives_the_same_bits():
    inputs, expected = captured()
    loaded = msbc.load(last_program().msbc)
    found = loaded.run(inputs)
    by_shape = {array.shape: array for array in found}
    for array in expected:
        np.testing.assert_array_equal(
            by_shape[array.shape]
            if (array.shape != (12, 8))
            else next(item for item in found if item.shape == array.shape and np.array_equal(item, array)),
            array,
        )
    again = loaded.run(dict(enumerate(inputs)))
    for a, b in zip(found, again, strict=True):
        np.testing.assert_array_equal(a, b)


def test_any_value_of_a_file_can_be_asked_for():
    (x, w), _ = captured()
    loaded = msbc.load(last_program().msbc)
    product = loaded.run((x, w), outputs=[2])[0]
    np.testing.assert_allclose(product, x.astype(np.float64) @ w, atol=1e-5)


def test_places_and_names_come_back_into_the_graph():
    captured()
    program = last_program()
    loaded = msbc.load(program.msbc)
    graph = _core.Graph("again")
    x, w = np.ones((12, 20), np.float32), np.ones((20, 8), np.float32)
    values = loaded.record(graph, [graph.input(a.ctypes.data, a.shape, F32, None, a) for a in (x, w)])
    for value, item in zip(values[2:], program.instructions, strict=True):
        assert (graph.opcode(value), graph.place(value), tuple(graph.shape(value))) == (item.opcode, item.place, tuple(item.shape))
        assert _core.place_info(graph.place(value))[0] == __file__


def test_constants_travel_with_the_file():
    (x, w), expected = captured()
    loaded = msbc.load(msbc.dump(last_program(), constants={1: w}))
    found = loaded.run([x])
    assert any(np.array_equal(item, expected[0]) for item in found)
    with pytest.raises(dvm.Error, match="takes 1 inputs, got 2"):
        loaded.run([x, w])


def test_patched_shapes_run_and_unpatched_ones_say_so():
    code = Code(
        "scale",
        [Input(F32, (4, 6))],
        [Instruction(OP["MUL"], (0, -1), (4, 6), F32, imms=(2.0,)), Instruction(OP["SUM"], (1,), (4,), F32, attrs=(0, 1))],
        [2],
    )
    buf = bytearray(msbc.dump(code))
    x = f32(9, 7)
    with pytest.raises(dvm.ShapeError, match=r"instruction 0 says \[4, 6\], its operands give \[9, 7\].*patch_shapes"):
        msbc.load(buf).run([x])
    msbc.patch_shapes(buf, {0: (9, 7), 1: (9,)})
    np.testing.assert_allclose(msbc.load(buf).run([x])[0], 2 * x.astype(np.float64).sum(1), rtol=1e-5)


@pytest.mark.parametrize("array, text", [(np.zeros((4, 6)), "float64"), (np.zeros(6, np.float32), r"\[6\]")])
def test_inputs_of_another_dtype_or_rank_are_refused(array, text):
    code = Code("f", [Input(F32, (4, 6), name="x")], [Instruction(OP["EXP"], (0,), (4, 6), F32)], [1])
    with pytest.raises(dvm.Error, match=rf"input 0 \(x\) is f32\[4,6\].*{text}.*must agree"):
        msbc.load(msbc.dump(code)).run([array])


def test_a_plain_stream_runs():
    x = f32(3, 5)
    code = Code("f", [Input(F32, (3, 5))], [Instruction(OP["EXP"], (0,), (3, 5), F32), Instruction(OP["ADD"], (1, 0), (3, 5), F32)])
    found = msbc.load(msbc.dump(code, sections=False)).run([x])
    assert len(found) == 1
    np.testing.assert_allclose(found[0], np.exp(x.astype(np.float64)) + x, rtol=1e-5)


# ---- text of programs --------------------------------------------------------------------------------


def test_text_at_each_level_maps_lines_to_source_and_instructions():
    captured()
    program = last_program()
    count = len(program.instructions)
    for level in ("graph", "tensor", "tile"):
        text, line_map = program.text(level)
        lines = text.splitlines()
        assert line_map and all(entry["file"] == __file__ and 0 <= entry["instruction"] < count for entry in line_map)
        source = open(__file__).read().splitlines()
        for entry in line_map:
            assert 1 <= entry["line"] <= len(lines) and source[entry["sourceLine"] - 1].strip().startswith(("h =", "p =", "return p"))
        if level != "tile":
            assert {entry["instruction"] for entry in line_map} == set(range(count))
    assert "MatMul<trans_a=0, trans_b=0>" in program.text("graph")[0] and "MATMUL(%i0, %i1) f32[12,8]" in program.text("tensor")[0]
    with pytest.raises(dvm.Error, match="no level 'assembler'; there are graph, tensor, tile"):
        program.text("assembler")


def test_the_line_map_has_every_instruction_once():
    captured()
    program = last_program()
    entries = program.line_map()
    assert [entry["instruction"] for entry in entries] == list(range(len(program.instructions)))
    assert all(entry["file"] == __file__ and entry["line"] > 0 and entry["function"].endswith("block") for entry in entries)


def test_the_module_of_programs_stays_callable():
    import dvm_core.programs as module

    assert dvm.programs() and dvm.programs is module and module.program(dvm.programs()[0].id).id == dvm.programs()[0].id
