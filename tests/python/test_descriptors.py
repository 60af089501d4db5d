"""Descriptors and templates: every instruction has one, and on every back end it is bound to what runs it or says why nothing does."""
import ctypes

import numpy as np
import pytest
from ascend_documents import FUNCTIONS
from core_kit import OP, Recorder, arange

import dvm_core as dvm
from dvm_core import _core
from dvm_core.cli import main
from dvm_core.devices import aclnn, table_ascend, table_gpu, templates
from dvm_core.devices.arguments import CONDITIONS, View
from dvm_core.devices.descriptors import CAPABILITIES, Descriptor, Operand, descriptors
from dvm_core.devices.doctor import rows
from dvm_core.devices.templates import BACK_ENDS, NoTemplate, Template, bind
from dvm_core.opcheck import cases

SHORTS = {dtype.short for dtype in dvm.dtypes.TABLE}


def program_of(case):
    """The program of an op-check case, None if the op does not take these dtypes."""
    graph = _core.Graph("described")
    inputs = zip(case.inputs, case.dtypes, strict=True)
    values = [graph.input(a.ctypes.data, a.shape, dvm.dtypes.of(name).code, None, a) for a, name in inputs]
    operands = tuple(values[o] if o >= 0 else -1 for o in case.operands)
    try:
        last = graph.op(OP[case.op], operands, case.attrs, case.shape, dvm.dtypes.of(case.dtype).code if case.dtype else 0, case.imms)
    except _core.Error:
        return None
    return graph.flush([last]).program


def described(case):
    """Its descriptor."""
    program = program_of(case)
    return program and next(descriptors(dvm.msbc.Code.of(program)))


@pytest.fixture(scope="module")
def everything():
    found = {}
    for op in OP:
        found[op] = [d for d in map(described, cases.cases(op)) if d is not None]
    return found


# ---- descriptors ---------------------------------------------------------------------------------------------------------------------

def test_every_op_has_descriptors_with_a_capability(everything):
    assert all(everything.values())
    assert {d.capability for all_of_it in everything.values() for d in all_of_it} == set(CAPABILITIES)


def test_a_descriptor_says_what_a_block_takes():
    r = Recorder()
    x, y = r.input(arange(64, 100)), r.input(arange(1, 100))
    added = r.add(x, y)
    total = r.sum(added, attrs=(0, 1))
    product = r.matmul(added, r.input(arange(100, 300)), attrs=(0, 0))
    launch = r.graph.flush([total, product])
    add, reduced, matmul = descriptors(dvm.msbc.Code.of(launch.program))
    assert (add.capability, add.block, add.local_bytes) == ("vector", 4096, 4096 * 12)
    assert (reduced.capability, reduced.block, reduced.local_bytes) == ("reduce", 100, 100 * 4 + 4)
    assert (matmul.capability, matmul.block) == ("cube", 64 * 128)
    assert matmul.local_bytes == 4 * (64 * 100 + 100 * 128 + 64 * 128)
    assert str(add) == "ADD(f32[64,100], f32[1,100]) -> f32[64,100]: vector, blocks of 4096, 49152 bytes near"


def test_a_descriptor_of_a_file_is_that_of_the_program(everything):
    r = Recorder()
    x = r.input(arange(8, 8))
    launch = r.graph.flush([r.select(r.greater(x, -1, imms=(0.5,)), x, r.reshape(x, shape=(8, 8)))])
    code = dvm.msbc.Code.of(launch.program)
    assert list(descriptors(dvm.msbc.load(dvm.msbc.dump(launch.program)).code)) == list(descriptors(code))
    assert next(descriptors(code)).operands[1] is None


# ---- binding -------------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("end", BACK_ENDS)
def test_binding_is_total_and_the_same_every_time(end, everything):
    for op, found in everything.items():
        for d in found:
            binding = bind(d, end)
            assert isinstance(binding, Template) or (isinstance(binding, NoTemplate) and binding.reason), (op, str(d))
            assert binding == BACK_ENDS[end].bind(d)


@pytest.mark.parametrize("table", [table_ascend.ASCEND, table_gpu.CUDA, table_gpu.ROCM], ids=["ascend", "cuda", "rocm"])
def test_tables_have_the_ops_there_are(table):
    assert set(table) == set(OP)


def test_ours_run_everything(everything):
    assert all(isinstance(bind(d, end), Template) for found in everything.values() for d in found for end in ("cpu", "npu-sim"))


def test_dtypes_of_the_tables_are_dtypes_and_named_once():
    for op, variants in table_ascend.ASCEND.items():
        if isinstance(variants, tuple):
            named = [dtype for variant in variants if not variant.when for dtype in variant.dtypes.split()]  # the last of each dtype
            assert len(set(named)) == len(named) and set(named) <= SHORTS, op
            assert all(bool(variant.calls) != bool(variant.reason) for variant in variants), op
            assert {name for variant in variants for name in variant.when} <= set(CONDITIONS), op
    for table in (table_gpu.CUDA, table_gpu.ROCM):
        assert all(set(row.dtypes.split()) <= SHORTS and bool(row.calls) != (not row.dtypes) for row in table.values())


def test_names_of_libraries_are_of_their_kind():
    cuda = {name for row in table_gpu.CUDA.values() for name in row.calls}
    assert all(name.startswith(("cublas", "cudnn", "CUDNN_POINTWISE_", "CUDNN_REDUCE_TENSOR_", "cudaMem")) for name in cuda)
    rocm = {name for row in table_gpu.ROCM.values() for name in row.calls}
    assert all(name.startswith(("hipblas", "miopen", "hipMem")) for name in rocm)


def test_tile_names_are_those_of_the_tile_code():
    for op in ("ADD", "EXP", "SELECT", "SUM", "MEAN", "MATMUL", "CAST", "RANDOM"):
        program = next(program for program in map(program_of, cases.cases(op)) if program is not None)
        text = "".join(program.tile_text(area.index) for area in program.areas)
        assert all(name in text for name in templates.tile_names(op)), (op, text)


# ---- Ascend's templates against the vendor's documents -------------------------------------------------------------------------------

KINDS = {"tensor": "TOR", "scalar": "S", "ints": "I", "bools": "B", "tensors": "L", "i64": "q", "int": "i", "i8": "c", "bool": "b",
         "dtype": "d"}


def ascend_calls(everything):
    for found in everything.values():
        for d in found:
            binding = bind(d, "ascend")
            if isinstance(binding, Template):
                yield from ((d, binding, call) for call in binding.calls if not call.name.startswith("host."))


def test_every_call_is_documented_and_has_the_arguments_of_its_prototype(everything):
    seen = set()
    for d, binding, call in ascend_calls(everything):
        own = {"r"} | {temporary.name for temporary in binding.temporaries}
        prototype = FUNCTIONS[call.name]
        seen.add(call.name)
        assert len(call.arguments) == len(prototype), (call.name, prototype)
        for argument, parameter in zip(call.arguments, prototype, strict=True):
            assert parameter[0] in KINDS[argument.kind], (call.name, argument, parameter)
            assert argument.value is not None or parameter.endswith("?"), (call.name, argument)
            if argument.kind == "tensor" and argument.value is not None and parameter[0] != "T":
                assert argument.value.base in own, f"{call.name} of {d} writes an operand"
    assert seen == set(FUNCTIONS), f"documented and never called: {set(FUNCTIONS) - seen}"


def test_the_result_is_written_last(everything):
    last = {}
    for d, binding, call in ascend_calls(everything):
        pairs = zip(call.arguments, FUNCTIONS[call.name], strict=True)
        written = [argument.value.base for argument, parameter in pairs if parameter[0] in "OR" and argument.value is not None]
        last[d, binding] = written
    assert all("r" in written for written in last.values())


def test_views_stay_within_their_memory(everything):
    for d, binding, call in ascend_calls(everything):
        sizes = {"r": d.size} | {name: t.size for name, t in zip("abc", d.operands, strict=False) if t}
        sizes |= {t.name: int(np.prod(t.shape)) for t in binding.temporaries}
        for argument in call.arguments:
            for view in argument.value if argument.kind == "tensors" else (argument.value,):
                if not isinstance(view, View) or view.base.startswith("#"):
                    continue
                assert min((*view.strides, view.offset), default=0) >= 0
                if np.prod(view.shape):
                    reach = view.offset + sum((n - 1) * s for n, s in zip(view.shape, view.strides, strict=True))
                    assert reach < max(sizes[view.base], 1), (str(d), view)


def test_types_are_those_of_the_vendor():
    assert set(aclnn.TYPES) == {dtype.name for dtype in dvm.dtypes.TABLE}
    assert (aclnn.TYPES["float32"], aclnn.TYPES["float16"], aclnn.TYPES["bool"], aclnn.TYPES["bfloat16"]) == (0, 1, 12, 27)


@pytest.mark.parametrize("value, dtype, data", [
    (1.0, dvm.float32, b"\x00\x00\x80?"), (1.0, dvm.bfloat16, b"\x80?"), (float("nan"), dvm.bfloat16, b"\xc0\x7f"),
    (True, dvm.bool_, b"\x01"), (-1, dvm.int64, b"\xff" * 8), (1e9, dvm.float16, b"\x00|"),
    (1.00390625, dvm.bfloat16, b"\x80?"), (1.01171875, dvm.bfloat16, b"\x82?")])
def test_scalars_lie_in_memory_as_their_dtype_has_them(value, dtype, data):
    assert aclnn.scalar_bytes(value, dtype) == data


def op(name, operands, shape, dtype=dvm.float32, attrs=(), imms=(), cls=None):
    kinds = {entry[0]: entry[2] for entry in _core.OPS}
    tensors = tuple(t if t is None else Operand(*t) for t in operands)
    return Descriptor(name, cls or kinds[name], tensors, dtype, shape, tuple(attrs), tuple(imms), "vector", 0, 0)


F = dvm.float32


@pytest.mark.parametrize("d, reason", [
    (op("POW", [(dvm.int32, (3,)), (dvm.int32, (3,))], (3,), dvm.int32), "negative powers"),
    (op("NEG", [(dvm.uint8, (3,))], (3,), dvm.uint8), "not of u8, only of f32 f16 bf16 f64 i8 i32 i64"),
    (op("SHIFT_LEFT", [(dvm.int32, (3,)), None], (3,), dvm.int32, imms=(32,)), "no bit number"),
    (op("SHIFT_LEFT", [(dvm.int32, (3,)), (dvm.int32, (3,))], (3,), dvm.int32), "by a tensor"),
    (op("ADD", [(F, (1,) * 9), (F, (1,) * 9)], (1,) * 9), "rank 9 is above 8"),
    (op("MATMUL", [(F, (1,) * 7), (F, (1,) * 7)], (1,) * 7, attrs=(0, 0)), "rank 2 to 6"),
    (op("AVG_POOL2D", [(F, (1, 1, 5, 5))], (1, 1, 4, 4), attrs=(2, 2, 1, 1, 0, 0, 1, 1, 0, 0)), "as many zeros"),
])
def test_what_cannot_run_on_ascend_says_why(d, reason):
    binding = bind(d, "ascend")
    assert isinstance(binding, NoTemplate) and reason in binding.reason, binding


def test_an_immediate_is_a_scalar_where_there_is_such_a_function_else_a_tensor_without_axes():
    d = op("SUB", [None, (F, (2, 3))], (2, 3), imms=(1.5,))
    assert [call.name for call in bind(d, "ascend").calls] == ["aclnnRsubs"]
    d = op("MAXIMUM", [(F, (2, 3)), None], (2, 3), imms=(1.5,))
    binding = bind(d, "ascend")
    assert [call.name for call in binding.calls] == ["aclnnInplaceFillScalar", "aclnnMaximum"]
    assert binding.calls[1].arguments[1].value == View("b", F, (), ())


def test_zeros_of_both_signs_are_two_templates():
    plus, minus = (bind(op("DIV", [(F, (3,)), None], (3,), imms=(zero,)), "ascend") for zero in (0.0, -0.0))
    assert [str(b.calls[0].arguments[1].value[0]) for b in (plus, minus)] == ["0.0", "-0.0"]


def test_a_tensor_of_no_axes_stays_one_beside_an_immediate():
    d = op("DIV", [None, (F, ())], (), imms=(2.0,))
    assert bind(d, "ascend").temporaries[0].shape == ()


def test_c_types_are_those_of_the_prototypes():
    assert isinstance(aclnn.PLAIN["i8"](0), ctypes.c_int8) and isinstance(aclnn.PLAIN["bool"](1), ctypes.c_bool)
    assert isinstance(aclnn.PLAIN["dtype"](dvm.bfloat16), ctypes.c_int) and aclnn.PLAIN["dtype"](dvm.bfloat16).value == 27


# ---- what a user sees ----------------------------------------------------------------------------------------------------------------

SCRIPT = """
import dvm, numpy as np

@dvm.kernel(ktype="vector", dynamic=False)
def kernel(k, x):
    return k.store(k.exp(k.add(k.load(x, "float32", (4, 8)), 1.0)))
"""


def test_dis_shows_what_each_instruction_would_run_on(tmp_path, capsys):
    script = tmp_path / "k.py"
    script.write_text(SCRIPT)
    assert main(["dis", f"{script}:kernel", "--descriptors"]) == 0
    text = capsys.readouterr().out
    assert "needs    vector, blocks of 32, 256 bytes near" in text
    assert "cpu      Adds\n" in text and "ascend   aclnnAdds\n" in text and "cuda     CUDNN_POINTWISE_EXP\n" in text
    assert "; ascend: all of it (never run on hardware)" in text
    assert "; rocm: 1 of 2 instructions; not %2 EXP (no adapter in this version; never run on hardware)" in text
    assert main(["dis", f"{script}:kernel", "--descriptors", "--device", "ascend:3"]) == 0
    text = capsys.readouterr().out
    assert "ascend" in text and "cudnn" not in text.lower()


def test_dis_of_a_file_shows_them_too(tmp_path, capsys):
    r = Recorder()
    x = r.input(np.arange(6, dtype=np.int32))
    launch = r.graph.flush([r.pow(x, x)])
    path = tmp_path / "p.msbc"
    path.write_bytes(dvm.msbc.dump(launch.program))
    assert main(["dis", str(path), "--descriptors", "--device", "ascend"]) == 0
    assert "no template: i32: negative powers" in capsys.readouterr().out


@pytest.mark.parametrize("arguments, text", [(["--descriptors", "--device", "toaster"], "no back end for 'toaster'; there are cpu"),
                                             (["--device", "cpu"], "--device of a .msbc file goes with --descriptors"),
                                             (["--descriptors", "--device", "npu-sim:999"], "there is no device 'npu-sim:999'; available"),
                                             (["--descriptors", "--device", "ascend:x"], "there is no device 'ascend:x'; an Ascend NPU is"),
                                             (["--passes", "--level", "tile"], "--level does not go with --passes")])
def test_dis_refuses_what_makes_no_sense(arguments, text, capsys):
    assert main(["dis", "x.msbc", *arguments]) == 1
    assert text in capsys.readouterr().err


@pytest.mark.parametrize("device", ["npu-sim:999", "ascend:x", "toaster"])
def test_doctor_refuses_a_device_that_cannot_be(device, capsys):
    assert main(["doctor", "--device", device]) == 1
    told = capsys.readouterr()
    assert repr(device) in told.err and not told.out
    assert main(["doctor", "--ops", "--device", "cpu"]) == 1 and "--device does not go with --ops" in capsys.readouterr().err


def test_doctor_of_a_device_has_a_line_for_every_op(capsys):
    assert main(["doctor", "--device", "npu-sim:950"]) == 0
    assert main(["doctor", "--device", "cuda"]) == 1
    text = capsys.readouterr().out
    assert "SCATTER               – no library op" in text and "never run on hardware" in text
    for end in BACK_ENDS:
        assert [name for name, _ in rows(end)] == list(OP) and all(what for _, what in rows(end))
