"""Kernels as a whole: both forms, shapes that change, outputs given by the caller, text, errors with the user's line."""

import pathlib
import re
import subprocess
import sys
import threading
import time
import types

import numpy as np
import pytest

import dvm_core as dvm

rng = np.random.default_rng(3)


def f32(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def line_of(text):
    lines = pathlib.Path(__file__).read_text().splitlines()
    return next(i for i, line in enumerate(lines, 1) if text in line)


@dvm.kernel
def add(k, x, y):
    a = k.load(x, dvm.float32)
    b = k.load(y, "float32")
    return k.store(k.add(a, b))


def test_one_kernel_takes_any_rank_and_shape():
    for shapes in (((32, 32), (32, 32)), ((32, 1), (32, 512)), ((7,), (3, 5, 7)), ((), (4,)), ((2, 3, 4, 5), (4, 1))):
        x, y = (f32(*shape) for shape in shapes)
        np.testing.assert_allclose(add(x, y), x + y, rtol=1e-6)


def test_a_new_shape_is_no_new_program():
    add(f32(8, 9), f32(8, 9))
    program = add.program()
    for rows in range(1, 20):
        add(f32(rows, 9), f32(rows, 9))
        assert add.program().id == program.id


def test_strided_and_big_endian_arguments():
    x = f32(20, 30)
    np.testing.assert_allclose(add(x[::2, ::3], x.T[:10:1, ::2].copy().astype(">f4")), x[::2, ::3] + x.T[:10, ::2], rtol=1e-6)
    np.testing.assert_allclose(add(x.T, x.T), 2 * x.T, rtol=1e-6)


@pytest.mark.parametrize(
    "arguments", [{}, {"ktype": "vector"}, {"ktype": "mix", "dynamic": False}, {"ktype": "vector:spec,priv1", "dyn_shape": True}]
)
def test_decorator_arguments_change_no_result(arguments):
    @dvm.kernel(**arguments)
    def square(k, x, s):
        return k.store(k.mul(k.pow(k.load(x, "float32"), 2), k.scalar(s)))

    x = f32(6, 7)
    for scale in (0.5, 2, np.float32(3)):
        np.testing.assert_allclose(square(x, scale), x.astype(np.float64) ** 2 * float(scale), rtol=1e-5)


def test_the_form_with_k_alone_takes_arguments_in_declaration_order():
    @dvm.kernel(ktype="spec", dyn_shape=True)
    def layer(k):
        x = k.load([-1, 64], dvm.float32)
        scale = k.scalar(dvm.float32)
        bias = k.load([64], dvm.float32)
        k.store(k.add(k.mul(x, scale), bias))
        k.store(k.max(x, [1]), dvm.float32)

    x, bias = f32(10, 64), f32(64)
    y, top = layer(x, 0.5, bias)
    np.testing.assert_allclose(y, x * 0.5 + bias, rtol=1e-6)
    np.testing.assert_array_equal(top, x.max(1))
    out, top_out = np.zeros((10, 64), np.float32), np.zeros(10, np.float32)
    assert layer.run(x, 2, bias, out, top_out) is None
    np.testing.assert_allclose(out, x * 2 + bias, rtol=1e-6)
    np.testing.assert_array_equal(top_out, x.max(1))
    with pytest.raises(dvm.Error, match="expects 3 arguments, got 2"):
        layer(x, 1)


def test_outputs_may_be_strided():
    @dvm.kernel
    def double(k):
        return k.store(k.mul(k.load([-1, -1], "float32"), 2.0))

    x, base = f32(5, 6), np.full((12, 5), -1, np.float32)
    double.run(x, base[::2].T)
    np.testing.assert_array_equal(base[::2], 2 * x.T)
    assert (base[1::2] == -1).all()


def test_kernel_object_binds_runs_and_gives_outputs():
    k = dvm.Kernel("vector:dyn", "dev", 0)
    a, b = k.load([-1, 8], "float32"), k.load([8], dvm.float32)
    s = k.scalar()
    c = k.store(k.add(k.mul(a, s), b))
    d = k.view_store(k.exp(b), [2])
    for rows in (3, 5):
        x, y, gaps = f32(rows, 8), f32(8), np.zeros(16, np.float32)
        k.input(a, x), k.input(b, y), k.input(s, 3)
        k.set_output(d, gaps)
        k.codegen(None)
        k.run()
        np.testing.assert_allclose(k.output(c), x * 3 + y, rtol=1e-6)
        np.testing.assert_allclose(gaps[::2], np.exp(y), rtol=1e-5)
        assert not gaps[1::2].any() and c.shape() == [rows, 8] and c.dtype() == "float32" == dvm.float32
    assert k.perf(3)[0] > 0


def test_the_same_value_stored_twice_and_a_load_stored():
    @dvm.kernel
    def kernel(k):
        x = k.load([-1], "float32")
        y = k.exp(x)
        return k.store(y), k.store(y), k.store(x), k.store(k.reshape(x, [-1, 2]))

    x = f32(6)
    a, b, c, d = kernel(x)
    np.testing.assert_allclose(a, np.exp(x), rtol=1e-5)
    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(c, x)
    np.testing.assert_array_equal(d, x.reshape(3, 2))
    a[0] = 9
    assert b[0] != 9


def test_threads_may_share_a_kernel():
    wrong = []

    def work(number):
        x = np.full((64, 64), number, np.float32)
        for _ in range(50):
            if not (add(x, x) == 2 * number).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_values_carry_the_names_of_the_body():
    @dvm.kernel
    def named(k, x):
        a = k.load(x, "float32")
        hidden = k.exp(k.mul(a, 2.0))
        return k.store(hidden)

    named(f32(3, 4))
    assert [item.value_name for item in named.program().instructions] == ["", "hidden"]


def test_a_dead_node_costs_nothing():
    @dvm.kernel
    def kernel(k):
        x = k.load([4], "float32")
        k.exp(k.load([9], "float32"))
        return k.store(k.add(x, 1.0))

    kernel(f32(4), f32(9))
    assert len(kernel.program().instructions) == 1


# ---- text --------------------------------------------------------------------------------


def test_dump_before_and_after_a_call_has_dvm_lines():
    @dvm.kernel(ktype="vector")
    def kernel(k, x):
        return k.store(k.sum(k.add(k.load(x, "float32", [32, 512]), 0.1), [1], True))

    before = kernel.dump()
    assert before.startswith("rgraph.vector() {\n") and before.endswith("}\n")
    assert "  %1[-1]<float32> = Add<0.1>(%0[32,512]<float32>)\n" in before.replace("%1[32,512]", "%1[-1]")
    kernel(f32(32, 512))
    after = kernel.dump()
    first = [r"vgraph\(tile_num=\d+\) \{", r"  %0\[512,32\]<float32> = Load\(\)"]
    first.append(r"  %1\[512,32\]<float32> = Add<0.1>\(%0\[512,32\]<float32>\) // stride=\[1, 512\]")
    assert re.match("\n".join(first) + "\n", after)
    assert "%2[1,32]<float32> = Reduce<[1], true, sum>(%1[512,32]<float32>)" in after


def test_das_names_instructions_and_is_the_same_for_a_fresh_kernel():
    def make():
        @dvm.kernel
        def kernel(k):
            x = k.load([32, 64], "float32")
            return k.store(k.div(k.exp(x), k.sum(k.exp(x), [1], True)))

        return kernel

    first = make()
    text = first.das()
    assert text.startswith("// target=cpu") and "Exp.fp32" in text and "SumX.fp32" in text
    first(f32(32, 64))
    assert make().das() == text == first.das()


def test_das_of_a_kernel_of_any_shape_says_to_call_it():
    @dvm.kernel
    def kernel(k, x):
        return k.store(k.exp(k.load(x, "float32")))

    with pytest.raises(dvm.Error, match="call it once"):
        kernel.das()


# ---- errors --------------------------------------------------------------------------------


def raised(kind, text, body, marker):
    with pytest.raises(kind) as caught:
        body()
    error = caught.value
    assert re.search(text, str(error)), str(error)
    assert isinstance(error, dvm.Error)
    assert (error.file, error.line) == (__file__, line_of(marker)), str(error)
    assert str(error).startswith(f"{__file__}:{error.line}: ")
    return error


def test_mixed_dtypes_name_rule_and_line():
    def body():
        @dvm.kernel
        def kernel(k, x, y):
            a, b = k.load(x, "float32"), k.load(y, "int32")
            return k.store(k.mul(a, b))  # mixed

    error = raised(dvm.DtypeError, "Mul: operands are float32 and int32, and nothing is promoted", body, "# mixed")
    assert error.dtypes == ("float32", "int32") and error.op == "Mul"


def test_what_a_body_does_wrong():
    def integer_sum():
        dvm.kernel(lambda k, x: k.store(k.sum(k.load(x, "int32"), [0])))  # integer sum

    def fraction():
        dvm.kernel(lambda k, x: k.store(k.add(k.load(x, "int32"), 0.5)))  # fraction

    def two_numbers():
        dvm.kernel(lambda k, x: k.store(k.add(1, 2)))  # two numbers

    def no_dtype():
        dvm.kernel(lambda k, x: k.store(k.load(x, "float31")))  # no dtype

    def static_shapes():
        dvm.kernel(lambda k: k.store(k.add(k.load([3, 4], "float32"), k.load([5], "float32"))))  # static shapes

    raised(dvm.DtypeError, "sum takes float32, float64, got int32", integer_sum, "# integer sum")
    raised(dvm.DtypeError, "0.5 does not fit a tensor of int32", fraction, "# fraction")
    raised(dvm.ArgumentError, "one side must be a tensor", two_numbers, "# two numbers")
    raised(dvm.DtypeError, "'float31' is no dtype", no_dtype, "# no dtype")
    raised(dvm.ShapeError, r"\[3,4\].*\[5\]", static_shapes, "# static shapes")


def test_a_shape_that_does_not_fit_names_the_line_of_the_op():
    @dvm.kernel
    def kernel(k, x, y):
        a, b = k.load(x, "float32"), k.load(y, "float32")
        c = k.add(a, b)  # adds
        return k.store(k.reshape(c, [7, -1]))  # reshapes

    raised(dvm.ShapeError, r"f(loat)?32\[3,4\] and f(loat)?32\[3,5\]", lambda: kernel(f32(3, 4), f32(3, 5)), "# adds")
    raised(dvm.ShapeError, r"12 elements \[3, 4\] do not make \[7, -1\]", lambda: kernel(f32(3, 4), f32(3, 4)), "# reshapes")
    assert kernel(f32(7, 2), f32(7, 2)).shape == (7, 2)  # and the kernel is as good as before


def test_arguments_that_do_not_fit():
    @dvm.kernel
    def kernel(k, x):
        return k.store(k.exp(k.load(x, "float32", [-1, 4])))  # declared

    raised(dvm.DtypeError, r"declared float32, called with float64\[2, 4\]", lambda: kernel(np.zeros((2, 4))), "# declared")
    raised(dvm.ShapeError, r"declared \[-1, 4\], called with \[2, 5\]", lambda: kernel(f32(2, 5)), "# declared")
    raised(dvm.ShapeError, r"called with \[4\]", lambda: kernel(f32(4)), "# declared")
    with pytest.raises(dvm.ArgumentError, match="expects 1 arguments, got 2"):
        kernel(f32(2, 4), f32(2, 4))


def test_kernel_types_and_flags_are_checked():
    for kind in ("", "vector", "cube", "mix", "parallel", "seq", "split:priv1", "eager:unify_ws", "vector:dyn,spec"):
        dvm.Kernel(kind)
    with pytest.raises(dvm.Error, match="kernel type error"):
        dvm.Kernel("vectorr")
    with pytest.raises(dvm.Error, match="kernel flag error"):
        dvm.Kernel("vector:fast")


RELOADED = """import dvm_core as dvm

SCALE = 2.0


@dvm.kernel
def kernel(k, x):
    a = k.load(x, "float32")
    return k.store(k.mul(a, SCALE))
"""


def test_hot_reload_of_a_body_and_of_what_it_uses(tmp_path):
    from dvm_core.frontends import reloadable
    from dvm_core.hotreload import Host, Reloader, SourceBook

    path = tmp_path / "reloaded_kernel.py"
    path.write_text(RELOADED)
    module = sys.modules["reloaded_kernel"] = types.ModuleType("reloaded_kernel")
    module.__file__ = str(path)
    exec(compile(RELOADED, str(path), "exec"), vars(module))
    book = SourceBook()
    book.remember(str(path))
    reloader = Reloader(book, Host(reloadable, step=reloadable.step))
    x = f32(4)

    def save(old, new):
        path.write_text(path.read_text().replace(old, new))
        answers = []
        reloader.reload(str(path), None, answers.append)
        for _ in range(2000):
            found = module.kernel(x)
            if answers:
                return answers[0].outcome, found
            time.sleep(0.001)
        raise AssertionError("no answer")

    try:
        np.testing.assert_allclose(module.kernel(x), 2 * x, rtol=1e-6)
        outcome, _ = save("SCALE))", "SCALE + 1.0))")
        assert outcome == "applied"
        np.testing.assert_allclose(module.kernel(x), 3 * x, rtol=1e-6)
        assert save("SCALE = 2.0", "SCALE = 5.0")[0] == "applied"
        np.testing.assert_allclose(module.kernel(x), 6 * x, rtol=1e-6)
        assert save("k.mul(a, ", "k.sum(a, [0], True, ")[0] == "refused"
        np.testing.assert_allclose(module.kernel(x), 6 * x, rtol=1e-6)
    finally:
        del sys.modules["reloaded_kernel"]


@pytest.mark.parametrize(
    "script", sorted((pathlib.Path(__file__).parents[2] / "examples" / "kernels").glob("*.py")), ids=lambda path: path.stem
)
def test_examples_run_and_agree_with_numpy(script):
    done = subprocess.run([sys.executable, "-m", "dvm_core", "run", str(script)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "agrees with NumPy" in done.stdout


# ---- under the debugger --------------------------------------------------------------------------------


def test_a_stop_inside_a_kernel_changes_no_bit_and_is_known_as_graph_mode():
    from dvm_core import _core
    from dvm_core.frontends import capture

    @dvm.kernel
    def softmax(k, x):
        a = k.load(x, "float32")
        e = k.exp(k.sub(a, k.max(a, [-1], True)))
        return k.store(k.div(e, k.sum(e, [-1], True)))

    x = f32(17, 33)
    modes, seen = [], []

    def made(program):
        modes.append((capture.active().mode, capture.active().front_end, program.name))
        _core.set_hook(program.id, 2, _core.HOOK_STOP, 1)

    def stopped(launch, instruction, reason, hooks):
        count = launch.program.input_count
        seen.append((instruction, reason, hooks, launch.step, np.array(launch.array(count + 1)), launch.array(count + 2)))

    _core.set_program_handler(made)
    _core.set_stop_handler(stopped)
    try:
        watched = softmax(x)
    finally:
        _core.set_program_handler(None)
        _core.set_stop_handler(None)
        _core.clear_hooks()
    assert modes == [("graph", "builder", softmax.__qualname__)]
    ((instruction, reason, hooks, step, centred, later),) = seen
    assert (instruction, reason, hooks) == (2, "hook", (1,)) and step > 0 and later is None
    np.testing.assert_allclose(centred, x - x.max(-1, keepdims=True), rtol=1e-6)
    np.testing.assert_array_equal(softmax(x), watched)
