"""Each published misuse of DVM: an error with rule, line and advice on strict devices, the hardware's own result on faithful ones."""
import inspect

import numpy as np
import pytest

import dvm_core as dvm
from dvm_core.bf16 import convert_to_bf16
from dvm_core.devices import chips, rules

STRICT = ("cpu", "npu-sim:910b", "npu-sim:950")
FAITHFUL = ("npu-sim:910b:faithful", "npu-sim:950:faithful")
CHIPS = STRICT[1:]

strict = pytest.mark.parametrize("device", STRICT)
faithful = pytest.mark.parametrize("device", FAITHFUL)


@pytest.fixture(autouse=True)
def back_on_the_cpu():
    yield
    dvm.set_device("cpu")


def run(build, *arrays, dtypes=None, outputs=None):
    """Builds and runs a kernel of kind split: build(k, *loads) gives what is stored."""
    k = dvm.Kernel("split")
    loads = [k.load(list(a.shape), dtype) for a, dtype in zip(arrays, dtypes or [a.dtype.name for a in arrays], strict=True)]
    store = k.store(build(k, *loads))
    for load, array in zip(loads, arrays, strict=True):
        k.input(load, array)
    if outputs is not None:
        k.set_output(store, outputs)
    k.run()
    return k.output(store)


def refused(rule, call, *texts, here=True):
    """The error of `rule`; `here`: its line is one of the calling test's."""
    with pytest.raises(dvm.Error) as caught:
        call()
    error, frame = caught.value, inspect.currentframe().f_back
    assert error.rule == rule and f"(rule {rule})" in str(error), str(error)
    assert all(text in str(error) for text in texts), str(error)
    lines, first = inspect.getsourcelines(frame.f_code)
    assert error.file == __file__ and (not here or first <= error.line < first + len(lines)), str(error)
    return error


f32 = np.arange(-4, 8, dtype=np.float32).reshape(3, 4)
f16 = (f32 / 3).astype(np.float16)
i32 = (f32 * 1000).astype(np.int32)
i64 = i32.astype(np.int64)


def test_every_rule_is_held_by_a_test_of_this_file():
    source = inspect.getsource(inspect.getmodule(run))
    for rule in rules.RULES:
        assert source.count(f'"{rule.name}"'), rule.name
        assert rule.faithful in rules.FAITHFUL


# ---- two dtypes in one op ------------------------------------------------------------------------------------------------------------

@strict
@pytest.mark.parametrize("op", ["add", "sub", "mul", "div", "maximum", "less", "equal"])
def test_two_dtypes_are_an_error(device, op):
    dvm.set_device(device)
    refused("mixed-dtypes", lambda: run(lambda k, a, b: getattr(k, op)(a, b), f32, f16), "float32 and float16", "k.cast(x, dvm.float32)")
    refused("mixed-dtypes", lambda: run(lambda k, a, b: k.select(k.less(a, 1.0), a, b), f32, i32), "Select", "float32 and int32")


@faithful
@pytest.mark.parametrize("left, right", [(f32, f16), (f16, f32), (f32, i32), (i32, f32), (i64, f32), (i32, i64)])
def test_two_dtypes_read_the_second_operands_bytes(device, left, right):
    dvm.set_device(device)
    data = right.tobytes()[: left.nbytes].ljust(left.nbytes, b"\0")
    as_left = np.frombuffer(data, left.dtype).reshape(left.shape)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(run(lambda k, a, b: k.add(a, b), left, right), left + as_left)
        np.testing.assert_array_equal(run(lambda k, a, b: k.less(k.add(a, a), b), left, right), left + left < as_left)
        picked = run(lambda k, a, b: k.select(k.less(a, 1), a, b), left, right)
    np.testing.assert_array_equal(picked, np.where(left < 1, left, as_left))


@faithful
def test_of_bfloat16_too(device):
    dvm.set_device(device)
    bits = convert_to_bf16(f32)
    got = run(lambda k, a, b: k.add(a, b), f16, bits, dtypes=["float16", "bfloat16"])
    np.testing.assert_array_equal(got, f16 + bits.view(np.float16))


def test_a_kernel_built_for_the_hardware_is_still_an_error_elsewhere():
    dvm.set_device("npu-sim:910b:faithful")

    @dvm.kernel
    def mixed(k, x, y):
        return k.store(k.add(k.load(x, "float32"), k.load(y, "float16")))

    wrong = mixed(f32, f16)
    assert not np.allclose(wrong, f32 + f16)
    dvm.set_device("cpu")
    refused("mixed-dtypes", lambda: mixed(f32, f16), "float32 and float16")
    dvm.set_device("npu-sim:950:faithful")
    np.testing.assert_array_equal(mixed(f32, f16), wrong)


@pytest.mark.parametrize("device", [*STRICT, *FAITHFUL])
def test_what_a_chip_makes_of_a_mixed_product_is_not_published(device):
    dvm.set_device(device)
    a, b = f16[:, :3], f32
    for build in (lambda k, x, y: k.matmul(x, y), lambda k, x, y: k.concat([y, y, x], 0), lambda k, x, y: k.logical_and(x, y)):
        refused("mixed-cube", lambda build=build: run(build, np.ascontiguousarray(a), b), "nothing is promoted")


# ---- reductions ----------------------------------------------------------------------------------------------------------------------

@strict
def test_a_sum_of_anything_but_float32(device):
    dvm.set_device(device)
    for x in (f16, i32, i64, f32 > 0):
        refused("sum-dtype", lambda x=x: run(lambda k, a: k.sum(a, [1]), x), f"got {x.dtype.name}", "k.cast(x, dvm.float32)")
    for x in (i32, i64, f32 > 0):
        refused("reduce-dtype", lambda x=x: run(lambda k, a: k.max(a, [1]), x), f"max takes float32, float16, float64, got {x.dtype.name}")


@faithful
def test_is_no_tensor_on_the_hardware(device):
    dvm.set_device(device)
    k = dvm.Kernel("split")
    assert k.sum(k.load([3, 4], "float16"), [1]) is None
    assert k.max(k.load([3, 4], "int32"), [1]) is None and k.min(k.load([3], "bfloat16")) is None
    for use in (lambda: k.store(None), lambda: k.exp(k.sum(k.load([3], "int32")))):
        with pytest.raises(dvm.ArgumentError, match="got None, DVM's null object: what a reduction gives"):
            use()
    np.testing.assert_array_equal(run(lambda k, a: k.sum(a, [1]), f32), f32.sum(1))


# ---- ops without an instruction ------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("device", [*STRICT, *FAITHFUL])
def test_int64_has_sums_compares_and_choices_only(device):
    dvm.set_device(device)
    own = ["int64 binary op not supported"] if device in FAITHFUL else []
    for op in ("mul", "maximum", "minimum", "div", "pow"):
        refused("int64-op", lambda op=op: run(lambda k, a: getattr(k, op)(a, a), i64), "got int64", "cast it first", *own)
    got = run(lambda k, a: k.select(k.less(a, 0), k.sub(a, 1), k.add(a, a)), i64)
    np.testing.assert_array_equal(got, np.where(i64 < 0, i64 - 1, 2 * i64))


@pytest.mark.parametrize("device", [*STRICT, *FAITHFUL])
@pytest.mark.parametrize("op, x", [("sqrt", i32), ("round", i32), ("trunc", i64), ("exp", f32 > 0), ("reciprocal", i32),
                                   ("element_any", f16)])
def test_a_dtype_an_op_has_no_instruction_for(device, op, x):
    dvm.set_device(device)
    advice = "cast it first, for instance k.cast(x, dvm.float32)"
    error = refused("op-dtype", lambda: run(lambda k, a: getattr(k, op)(a), x), f"got {x.dtype.name}", advice)
    assert isinstance(error, dvm.DtypeError)


@pytest.mark.parametrize("device", [*STRICT, *FAITHFUL])
def test_indices_that_are_no_int32(device):
    dvm.set_device(device)
    refused("op-dtype", lambda: run(lambda k, a: k.one_hot(a, 5), i64), "OneHot: takes int32, got int64")


# ---- numbers -------------------------------------------------------------------------------------------------------------------------

NUMBERS = [0.5, -2.75, 2**31, 2**40 + 3, -(2**31) - 1, float("inf"), float("nan")]


@strict
@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_that_the_tensors_dtype_does_not_hold(device, number):
    dvm.set_device(device)
    refused("number-range", lambda: run(lambda k, a: k.add(a, number), i32), "does not fit a tensor of int32", "cast the tensor to float32")


@faithful
@pytest.mark.parametrize("number, bits", list(zip(NUMBERS, [0, -2, -(2**31), 3, 2**31 - 1, 2**31 - 1, 0], strict=True)))
def test_is_what_its_bits_hold(device, number, bits):
    dvm.set_device(device)
    np.testing.assert_array_equal(run(lambda k, a: k.maximum(a, number), i32), np.maximum(i32, np.int32(bits)))
    np.testing.assert_array_equal(run(lambda k, a: k.equal(a, number), i32), i32 == bits)


def test_also_when_the_number_comes_with_the_call():
    @dvm.kernel
    def added(k, x, s):
        return k.store(k.add(k.load(x, "int32"), k.scalar(s)))

    refused("number-range", lambda: added(i32, 2.5), "Add: the number 2.5")
    dvm.set_device("npu-sim:950:faithful")
    np.testing.assert_array_equal(added(i32, 2.5), i32 + 2)


@faithful
def test_casts_to_bool_lose_what_float16_does_not_hold(device):
    x = np.array([0.0, 1e-9, -2e-8, 6e-8, 70000.0], np.float32)
    for name in CHIPS:
        dvm.set_device(name)
        np.testing.assert_array_equal(run(lambda k, a: k.cast(a, "bool"), x), x != 0)
    dvm.set_device(device)
    np.testing.assert_array_equal(run(lambda k, a: k.cast(a, "bool"), x), [False, False, False, True, True])


# ---- chips ---------------------------------------------------------------------------------------------------------------------------

def kernel_of(op, dtype):
    """A kernel whose one op of interest is `op` of `dtype`, with the arrays for it."""
    one = dict.fromkeys("Sqrt Log Exp Round Floor Ceil Trunc IsFinite Abs LogicalNot ElementAny".split())
    names = {"IsFinite": "isfinite", "LogicalNot": "logical_not", "ElementAny": "element_any", "NotEqual": "not_equal", "Power": "pow",
             "GreaterEqual": "greater_equal", "LessEqual": "less_equal", "LogicalAnd": "logical_and", "LogicalOr": "logical_or"}
    x = np.ones((4, 4), dvm.DataType.numpy.fget(dvm.tester.of(dtype)))
    call = names.get(op, op.lower())
    if op in ("sum", "max", "min"):
        return lambda k, a: getattr(k, op)(a, [0]), x
    if op == "Select":
        return lambda k, a: k.select(k.cast(a, "bool"), a, a), x
    if op == "OneHot":
        return lambda k, a: k.one_hot(a, 4), x
    if op == "GatherLoad":
        def gather(k, a):
            table = k.gather_load([4, 4], k.cast(k.full(0, [2], "int32"), "int32"), dtype, 0, 1)
            k.input(table, x)
            return table
        return gather, x
    return (lambda k, a: getattr(k, call)(a)) if op in one else (lambda k, a: getattr(k, call)(a, a)), x


CASES = [(op, dtype) for op in chips.BY_OP if op != "GroupedMatMul" for dtype in (*chips.DTYPES, "float64")]


@pytest.mark.parametrize("device", CHIPS)
@pytest.mark.parametrize("op, dtype", CASES)
def test_a_chip_runs_what_the_table_says_and_names_what_it_lacks(device, op, dtype):
    group, arch = chips.BY_OP[op], {"npu-sim:910b": "AscendC220", "npu-sim:950": "AscendC310"}[device]
    build, x = kernel_of(op, dtype)
    dvm.set_device(device)
    if chips.has(arch, op, dtype):
        run(build, x, dtypes=[dtype])
        return
    if op == "LogicalNot":  # of numbers it is 1 - x
        return
    with pytest.raises(dvm.Error) as caught:
        run(build, x, dtypes=[dtype])
    rule = caught.value.rule
    if dtype in group.extra or dtype in group.ways:  # another device has it
        assert rule in ("chip-dtype", "chip-op") and device in str(caught.value) and "run it on" in str(caught.value), str(caught.value)
        dvm.set_device("cpu")
        run(build, x, dtypes=[dtype])
    else:
        assert rule in ("op-dtype", "int64-op", "sum-dtype", "reduce-dtype", "chip-dtype", "chip-op"), str(caught.value)


@pytest.mark.parametrize("device", [*CHIPS, *FAITHFUL])
def test_dtypes_of_the_cpu_alone_and_products_of_float32(device):
    dvm.set_device(device)
    wide = f32.astype(np.float64)
    refused("chip-dtype", lambda: run(lambda k, a: k.exp(a), wide), f"{device} (Ascend", "has no float64", "run it on the cpu", here=False)
    text = "has no MatMul of float32; it takes float16, bfloat16: cast first, for instance k.cast(x, dvm.float16), or run it on the cpu"
    refused("chip-dtype", lambda: run(lambda k, a: k.matmul(a, a, False, True), f32), text)


def test_what_one_chip_lacks_and_the_other_has():
    def gather(k, index):
        table = k.gather_load([3, 4], index, "float32", 0, 1)
        k.input(table, f32)
        return table

    index = np.array([2, 0], np.int32)
    for device in ("npu-sim:910b", "npu-sim:910b:faithful"):
        dvm.set_device(device)
        refused("chip-op", lambda: run(gather, index), "has no GatherLoad; run it on the cpu or npu-sim:950")
    dvm.set_device("npu-sim:950")
    np.testing.assert_array_equal(run(gather, index), f32[[2, 0]])


# ---- shapes and kinds ----------------------------------------------------------------------------------------------------------------

def test_more_groups_of_axes_than_a_chip_stretches_at_once():
    x = np.ones((1, 2, 1, 2, 1, 2, 1, 2, 1, 2), np.float32)
    five, four = [2] * 10, [2] * 8 + [1, 2]
    for device in CHIPS:
        dvm.set_device(device)
        refused("broadcast-groups", lambda: run(lambda k, a: k.broadcast(a, five), x), "stretches 5 groups of axes", "in two steps")
        full = np.ones(five, np.float32)
        refused("broadcast-groups", lambda full=full: run(lambda k, a, b: k.add(a, b), x, full), "Add")
        assert run(lambda k, a: k.broadcast(k.broadcast(a, four), five), x).shape == (2,) * 10
    dvm.set_device("npu-sim:950:faithful")
    refused("broadcast-groups", lambda: run(lambda k, a: k.broadcast(a, five), x), "multi-broadcast rank exceed max limit(4)")
    dvm.set_device("cpu")
    assert run(lambda k, a: k.broadcast(a, five), x).shape == (2,) * 10


@pytest.mark.parametrize("device", [*STRICT, *FAITHFUL])
def test_a_mix_kernel_has_one_matmul(device):
    dvm.set_device(device)
    k = dvm.Kernel("mix")
    a = k.load([4, 4], "float16")
    refused("mix-second-cube", lambda: k.matmul(k.matmul(a, a), a), "only one cube op in mix-kernel")


def test_behind_the_matmul_of_a_mix_kernel_all_is_elementwise():
    def build(then):
        k = dvm.Kernel("mix")
        a = k.load([4, 4], "float16")
        k.input(a, np.ones((4, 4), np.float16))
        return k, k.store(then(k, k.matmul(a, a)))

    def reduced():
        k, store = build(lambda k, x: k.max(x, [1]))
        k.run()
        return k.output(store)

    np.testing.assert_array_equal(reduced(), [4, 4, 4, 4])
    for device in (*CHIPS, *FAITHFUL):
        dvm.set_device(device)
        refused("mix-follow", reduced, "Reduce: stands behind the matmul of a mix kernel", "make it a split kernel", here=False)
        k, store = build(lambda k, x: k.maximum(k.add(k.cast(x, "float32"), 1.0), 0.0))
        k.run()
        np.testing.assert_array_equal(k.output(store), np.full((4, 4), 5))


# ---- memory --------------------------------------------------------------------------------------------------------------------------

@strict
@pytest.mark.parametrize("shift", [1, -3, 4])
def test_an_output_over_part_of_an_input(device, shift):
    dvm.set_device(device)
    memory = np.arange(100, dtype=np.float32)
    x, out = memory[10:50], memory[10 + shift : 50 + shift]
    before = memory.copy()
    first, last = 4 * max(-shift, 0), 4 * (40 - max(shift, 0)) - 1
    error = refused("alias", lambda: run(lambda k, a: k.add(a, 1.0), x, outputs=out),
                    f"bytes {first} to {last} of the array given for it", "or exactly the input's", here=False)
    assert "%0[40]<float32> of" in str(error) and "is read while" in str(error)
    np.testing.assert_array_equal(memory, before)


@faithful
def test_is_copied_to_the_chip_and_back_apart(device):
    dvm.set_device(device)
    memory = np.arange(100, dtype=np.float32)
    x, out = memory[10:50], memory[11:51]
    got = run(lambda k, a: k.add(a, a), x, outputs=out)
    np.testing.assert_array_equal(got, 2 * np.arange(10, 50, dtype=np.float32))


@pytest.mark.parametrize("device", [*STRICT, *FAITHFUL])
def test_an_output_over_the_whole_input_or_beside_it_is_fine(device):
    dvm.set_device(device)
    x = np.arange(16, dtype=np.float16).reshape(4, 4)
    want = x @ x
    run(lambda k, a: k.matmul(a, a), x, outputs=x)  # reads its operand many times
    np.testing.assert_array_equal(x, want)
    memory = np.arange(40, dtype=np.float32)
    run(lambda k, a: k.add(a, 1.0), memory[::2], outputs=memory[1::2])
    np.testing.assert_array_equal(memory[1::2], memory[::2] + 1)


@pytest.mark.parametrize("device", [*STRICT, *FAITHFUL])
def test_a_strided_store_needs_an_array_and_keeps_what_lies_between(device):
    dvm.set_device(device)
    k = dvm.Kernel("vector")
    x = k.load([2, 3], "float32")
    store = k.view_store(k.add(x, 1.0), [8, 2])
    k.input(x, f32[:2, :3])
    refused("view-store-base", k.run, "give it with set_output", here=False)
    base = np.full(16, -7, np.float32)
    k.set_output(store, base)
    k.run()
    want = np.full(16, -7, np.float32)
    want[[0, 2, 4, 8, 10, 12]] = (f32[:2, :3] + 1).ravel()
    np.testing.assert_array_equal(base, want)
