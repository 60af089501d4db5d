"""The Ascend adapter against a stand-in for CANN that follows its documents: results, order of calls, failures of every call."""
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from ascend_stand_in import StandIn
from core_kit import OP, Recorder, arange, drain, softmax, stop_handler
from core_programs import check_step, run
from random_programs import random_program

import dvm_core as dvm
from dvm_core import _core, devices
from dvm_core.cli import main
from dvm_core.devices import ascend
from dvm_core.opcheck import cases, modes

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.fixture
def cann():
    with StandIn() as stand_in:
        yield stand_in
        _core.clear_hooks()
        _core.set_check(0)
        dvm.set_device("cpu")
        ascend.shut_down()
        assert stand_in.misuse == []
        assert stand_in.left() == {}


def on_ascend(function):
    dvm.set_device("ascend:0")
    try:
        return function()
    finally:
        dvm.set_device("cpu")


# ---- results -------------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("op", OP)
def test_every_op_gives_what_the_cpu_gives_or_says_that_it_cannot(cann, op):
    runs = 0
    for case in cases.cases(op):
        want = modes.run(case, "fused")
        if want is None:
            continue
        try:
            got = on_ascend(lambda case=case: modes.run(case, "fused"))
        except dvm.UnsupportedError as error:
            assert f"{op} does not run on ascend: " in str(error)
            continue
        assert cann.misuse == [], case
        runs += 1
        half = got.dtype.itemsize == 2
        got, want = (cases.wide(x, "bfloat16") if x.dtype == np.uint16 else x.astype(np.float64) for x in (got, want))
        np.testing.assert_allclose(got, want, rtol=2e-2 if half else 1e-4, atol=1e-2 if half else 1e-4, err_msg=str(case.dtypes))
    assert runs or op in ("SCATTER", "SCATTER_ELEMENTS")


def test_every_instruction_of_random_programs_is_numpys_or_refused(cann):
    ran = 0
    for seed in range(40):
        program = random_program(seed)
        keep = list(range(len(program.inputs), len(program.inputs) + len(program.steps)))
        try:
            recorded, _ = on_ascend(lambda program=program, keep=keep: run(program, keep))
        except dvm.UnsupportedError:
            continue
        values = [*program.inputs, *(recorded.array(v) for v in keep)]
        for step in range(len(program.steps)):
            check_step(program, step, values)
        ran += 1
    assert ran >= 10


def test_a_training_step_from_the_public_api(cann):
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((32, 16), np.float32), rng.standard_normal((16, 8), np.float32)
    index = rng.integers(0, 32, 20).astype(np.int32)

    @dvm.jit
    def step(x, w, index):
        hidden = (x @ w).tanh()
        loss = (hidden * hidden).mean(axis=1, keepdims=True)
        return hidden, hidden[index].astype("float16"), loss.sum()

    def run():
        return [np.array(np.asarray(result)) for result in step(dvm.tensor(x), dvm.tensor(w), dvm.tensor(index))]

    want, got = run(), on_ascend(run)
    for a, b in zip(want, got, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(b.astype(np.float32), a.astype(np.float32), rtol=2e-3, atol=1e-3)
    assert {"aclnnMatmul", "aclnnTanh", "aclnnMean", "aclnnIndexSelect", "aclnnCast", "aclnnReduceSum"} <= set(cann.finished)


def test_a_loop_switches_between_devices_and_nothing_is_captured_again(cann):
    @dvm.jit
    def step(x):
        return x * 0.5 + 1.0

    x, before = dvm.tensor(arange(4, 4)), None
    for device in ("cpu", "ascend:0", "ascend:1", "npu-sim:910b", "ascend:0"):
        dvm.set_device(device)
        assert dvm.device() == device
        x = step(x)
        count = _core.stats()["programs"]
        assert before in (None, count)
        before = count
    np.testing.assert_allclose(np.asarray(x), arange(4, 4) / 32 + 1.9375)
    assert cann.finished == ["aclnnMuls", "aclnnAdds"] * 3


def test_inputs_of_any_strides_and_results_in_the_callers_memory(cann):
    base = arange(40, 50)
    dvm.set_device("ascend:0")
    for view in (base[::-1], base.T, base[3:30:2, ::-3], np.broadcast_to(base[4], (9, 50)), base[:0]):
        r = Recorder()
        doubled = r.add(r.input(view), r.input(view))
        out = np.empty(view.shape, np.float32)
        r.graph.flush([], [(doubled, out.ctypes.data)])
        np.testing.assert_array_equal(out, view + view)


def test_memory_is_used_again_and_given_back(cann):
    x = arange(64, 64)
    dvm.set_device("ascend:0")
    for _ in range(5):
        softmax(x)
    allocated = cann.calls.count("acl.rt.malloc")
    for _ in range(20):
        softmax(x)
    assert cann.calls.count("acl.rt.malloc") == allocated


# ---- indices -------------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("computed", [False, True])
def test_indices_are_checked_before_the_call_and_may_count_from_the_end(cann, computed):
    def take(index):
        r = Recorder()
        i = r.input(np.array(index, np.int64))
        i = r.add(i, -1, imms=(0,)) if computed else i
        taken = r.gather(r.input(arange(5, 3)), i, attrs=(0,))
        r.graph.flush([taken])
        return r.array(taken)

    dvm.set_device("ascend:0")
    np.testing.assert_array_equal(take([0, -1, 4]), arange(5, 3)[[0, -1, 4]])
    before = len(cann.finished)
    with pytest.raises(_core.Error, match=r"GATHER: index 5 \(element 1 of the index \[3\]\) is out of range for axis 0 of extent 5"):
        take([0, 5, 1])
    assert "aclnnIndexSelect" not in cann.finished[before:]
    np.testing.assert_array_equal(take([2]), arange(5, 3)[[2]])


@pytest.mark.parametrize("op, index, twice, new", [
    ("scatter", [[3, -5], [1, 4]], [[3, 0], [1, -5]], arange(2, 2, 2, 3)),
    ("scatter_elements", [[[3, 0, 1], [0, 1, -1]]] * 2, [[[3, 0, 1], [-2, 1, 2]]] * 2, arange(2, 2, 3))])
def test_writing_by_index_wants_distinct_elements(cann, op, index, twice, new):
    def write(index):
        r = Recorder()
        x = np.full((2, 5, 3), 7, np.float32)
        written = getattr(r, op)(r.input(x), r.input(np.array(index, np.int64)), r.input(new), attrs=(1,))
        r.graph.flush([written])
        return r.array(written).copy()

    np.testing.assert_array_equal(on_ascend(lambda: write(index)), write(index))
    with pytest.raises(dvm.UnsupportedError, match=f"{op.upper()} does not run on ascend: two indices name the same element"):
        on_ascend(lambda: write(twice))


def test_an_index_out_of_range_has_the_users_line(cann):
    dvm.set_device("ascend:0")
    x = dvm.tensor(arange(5, 3))
    with pytest.raises(dvm.ShapeError, match=r"test_ascend.py:\d+: GATHER: index 9") as caught:
        np.asarray(x[dvm.tensor(np.array([0, 9], np.int32))])
    assert os.path.basename(caught.value.file) == "test_ascend.py"


def test_an_empty_tensor_that_lies_nowhere_is_an_input(cann):
    def doubled():
        r = Recorder()
        x = r.graph.input(0, (0, 4), 1)
        y = r.concat(x, r.input(arange(2, 4)), attrs=(0,))
        r.graph.flush([y])
        return r.array(y)

    np.testing.assert_array_equal(on_ascend(doubled), doubled())


# ---- stops and hooks -----------------------------------------------------------------------------------------------------------------

def test_a_program_stops_runs_on_and_is_measured_on_the_device(cann):
    x = arange(4, 10)
    want, launch = softmax(x)
    seen = []

    def look(stopped, instruction, reason, hooks):
        seen.append((instruction, stopped.array(2).copy()))
        stopped.run_until(instruction + 1)
        seen.append(stopped.array(3).copy())

    _core.set_hook(launch.program.id, 2, _core.HOOK_STOP, 1)
    _core.set_hook(launch.program.id, 4, _core.HOOK_STATS, 2)
    with stop_handler(look):
        got = on_ascend(lambda: softmax(x))[0]
    np.testing.assert_allclose(got, want, rtol=1e-5)
    np.testing.assert_array_equal(seen[0][1], x - x.max(1, keepdims=True))
    np.testing.assert_allclose(seen[1], np.exp(seen[0][1]), rtol=1e-6)
    [event] = [event for event in drain() if event["kind"] == "stats"]
    assert event["stats"]["count"] == 40 and event["stats"]["mean"] == pytest.approx(0.1)


def test_programs_show_the_calls_that_run_each_instruction(cann):
    _, launch = softmax(arange(4, 10))
    program = dvm.programs.program(launch.program.id)
    text, line_map = on_ascend(lambda: (softmax(arange(4, 10)), program.text("tile"))[1])
    assert text.splitlines() == ["// ascend:0: instructions one after the other, each by its template", "0: aclnnAmax ; %0",
                                 "1: aclnnSub ; %1", "2: aclnnExp ; %2", "3: aclnnReduceSum ; %3", "4: aclnnDiv ; %4"]
    assert [entry["instruction"] for entry in line_map] == [0, 1, 2, 3, 4]


def test_the_editor_offers_it_where_pyacl_is(cann):
    assert devices.names().count("ascend:0") == 1 and devices.names()[0] == "cpu"


def test_scripts_may_ask_for_the_chip(cann):
    assert on_ascend(lambda: (dvm.Device.arch(), dvm.Device.soc_name())) == ("AscendC220", "Ascend910B-stand-in")


# ---- failures ------------------------------------------------------------------------------------------------------------------------

def program(out):
    """Elementwise ops, a reduction, a list, a product and an index, into the caller's memory."""
    r = Recorder()
    a = r.input(arange(4, 6) / 24)
    b = r.concat(r.maximum(r.exp(a), -1, imms=(1.5,)), a, attrs=(0,))
    c = r.matmul(b, b, attrs=(0, 1))
    d = r.gather(r.sum(c, attrs=(1, 1)), r.input(np.array([1, -1], np.int32)), attrs=(0,))
    r.graph.flush([], [(d, out.ctypes.data), (c, out.ctypes.data + 64)])


def test_each_call_failing_in_turn_is_an_error_that_leaves_everything_as_it_was(cann):
    want, got = np.full(80, 7, np.float32), np.full(80, 7, np.float32)
    program(want)
    dvm.set_device("ascend:0")
    program(got)
    np.testing.assert_allclose(got, want, rtol=1e-5)
    first = len(cann.calls)
    program(got)
    calls = cann.calls[first:]
    assert len(calls) > 60
    refused = 0
    for number, name in enumerate(calls):
        out = np.full(80, 7, np.float32)
        cann.fail(number, 207001 if name.endswith("malloc") else 507000)
        try:
            program(out)
        except dvm.DeviceError as error:
            refused += 1
            assert (out == 7).all(), name
            assert "failed with " in str(error) and "CANN says: " in str(error), name
            assert name in str(error) or name.startswith(("create", "acl.rt.synchronize")), (name, error)
        else:
            # what only gives back, or is asked for no more than to be polite
            assert name.startswith(("destroy", "acl.rt.destroy_event", "acl.rt.get_context", "acl.rt.set_context")), name
        cann.fail(-1, 0)
        dvm.set_device("ascend:0")  # opens it again if it had to be given up
        program(out)
        np.testing.assert_allclose(out, want, rtol=1e-5, err_msg=name)
        assert cann.misuse == [], name
    assert refused > 40


def test_each_call_of_opening_failing_in_turn_leaves_the_device_in_use(cann):
    dvm.set_device("ascend:1")
    ascend.shut_down()
    opening = cann.calls[: cann.calls.index("acl.rt.create_stream") + 1]
    assert opening == ["acl.init", "acl.rt.get_context", "acl.rt.set_device", "acl.rt.create_context", "acl.rt.create_stream"]
    dvm.set_device("cpu")
    for number, name in enumerate(opening):
        cann.fail(number, 507033)
        if name == "acl.rt.get_context":
            dvm.set_device("ascend:1")
            dvm.set_device("cpu")
        else:
            with pytest.raises(dvm.DeviceError, match=f"{name} failed with 507033: the device could not be set up; check driver"):
                dvm.set_device("ascend:1")
            assert dvm.device() == "cpu"
        ascend.shut_down()
        assert cann.left() == {}, name


def test_a_device_whose_stream_fails_is_given_up_and_opened_again(cann):
    dvm.set_device("ascend:0")
    softmax(arange(2, 3))
    stream = next(iter(cann.streams.values()))
    x = arange(2, 3)
    r = Recorder()
    result = r.exp(r.input(x))
    stream.tasks.append(lambda: 1 / 0)
    with pytest.raises(dvm.DeviceError, match="failed with 507035: an operator failed on a vector core"):
        r.graph.flush([result])
    assert cann.misuse.pop().startswith("ZeroDivisionError")
    with pytest.raises(dvm.DeviceError, match=r"ascend:0 failed before .*: dvm.set_device\('ascend:0'\) opens it again"):
        softmax(x)
    dvm.set_device("ascend:0")
    np.testing.assert_allclose(softmax(x)[0].sum(1), 1, rtol=1e-6)


def test_no_room_on_the_device_is_an_error_after_what_is_idle_was_given_back():
    with StandIn(memory=5000) as cann:
        dvm.set_device("ascend:0")
        softmax(arange(4, 4))  # some blocks of 512 bytes
        r = Recorder()
        a = r.exp(r.input(arange(500)))
        r.graph.flush([a])  # fits only without them
        with pytest.raises(dvm.DeviceError, match="acl.rt.malloc of 8192 bytes failed with 207001: no memory on the device; use smaller"):
            softmax(arange(2, 1000))
        np.testing.assert_allclose(softmax(arange(4, 4))[0].sum(1), 1, rtol=1e-6)
        dvm.set_device("cpu")
        ascend.shut_down()
        assert (cann.misuse, cann.left()) == ([], {})


def test_an_op_without_a_template_is_refused_before_anything_is_done(cann):
    dvm.set_device("ascend:0")
    calls = len(cann.calls)
    x = dvm.tensor(np.arange(4, dtype=np.int32))
    with pytest.raises(dvm.UnsupportedError, match=r"POW does not run on ascend: i32: negative .* The cpu and npu-sim devices") as caught:
        np.asarray((x + 1) ** x)
    assert len(cann.calls) == calls
    assert os.path.basename(caught.value.file) == "test_ascend.py"


# ---- beside others -------------------------------------------------------------------------------------------------------------------

def test_who_has_initialised_cann_finalises_it_and_keeps_its_device_and_context():
    with StandIn(initialised=True) as cann:
        dvm.set_device("ascend:0")
        softmax(arange(2, 3))
        assert cann.context == 1  # theirs
        dvm.set_device("cpu")
        ascend.shut_down()
        assert "acl.finalize" not in cann.calls and "acl.rt.reset_device" not in cann.calls
        assert (cann.misuse, cann.left()) == ([], {})


@pytest.mark.parametrize("missing, text", [(("libnnopbase.so",), "operator library cannot be loaded .*source set_env.sh"),
                                           (("libopapi_math.so", "libopapi_nn.so"), "libopapi.so: cannot open shared object file")])
def test_without_the_operator_libraries_there_is_no_device(missing, text):
    with StandIn(missing=missing) as cann:
        with pytest.raises(dvm.DeviceError, match=text):
            dvm.set_device("ascend:0")
        assert dvm.device() == "cpu" and cann.left() == {}


def test_an_older_cann_without_a_function_says_so():
    with StandIn(missing=("aclnnExp",)) as cann:
        with pytest.raises(dvm.DeviceError, match="this CANN has no aclnnExp: install a newer one"):
            on_ascend(lambda: softmax(arange(2, 3)))
        assert cann.misuse == []


@pytest.mark.parametrize("name, text", [("ascend:7", "acl.rt.set_device failed with 107001: there is no device of that number; `npu"),
                                        ("ascend:x", "there is no device 'ascend:x'; an Ascend NPU is 'ascend:0'"),
                                        ("ascend", "an Ascend NPU is 'ascend:0'"), ("ascend:-1", "an Ascend NPU is 'ascend:0'")])
def test_a_device_that_is_not_there_is_refused(cann, name, text):
    with pytest.raises(dvm.DeviceError, match=text):
        dvm.set_device(name)
    assert dvm.device() == "cpu"


def test_without_pyacl_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "acl", None)
    with pytest.raises(dvm.DeviceError, match="needs pyACL, which cannot be imported .*set_env.sh.*npu-sim:910b"):
        dvm.set_device("ascend:0")
    assert dvm.device() == "cpu"


SCRIPT = """
import os, sys
sys.path[:0] = {paths!r}
import numpy as np
import dvm_core as dvm
from ascend_stand_in import StandIn
cann = StandIn()
cann.__enter__()
dvm.set_device("ascend:0")
print(np.asarray(dvm.tensor(np.ones(3, np.float32)) + 1.0))
sys.stdout.flush()
if {fork}:
    child = os.fork()
    if not child:
        try:
            np.asarray(dvm.tensor(np.ones(3, np.float32)) + 1.0)
        except dvm.DeviceError as error:
            print(error)
        for name in ("ascend:0", "ascend:1"):
            try:
                dvm.set_device(name)
            except dvm.DeviceError as error:
                print("set_device:", error)
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(child, 0)
import atexit
atexit._run_exitfuncs()
print(cann.misuse, cann.left())
"""


@pytest.mark.parametrize("fork", [False, True])
def test_the_end_of_a_process_gives_everything_back_and_a_forked_child_starts_none(fork):
    here = Path(__file__).parent
    script = SCRIPT.format(paths=[str(here)], fork=fork)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    lines = done.stdout.splitlines()
    assert (lines[0], lines[-1]) == ("[2. 2. 2.]", "[] {}")
    assert done.stdout.count("was opened before this process was forked") == (3 if fork else 0)
    assert done.stdout.count("set_device: CANN was opened before") == (2 if fork else 0)


def test_doctor_says_what_is_there_and_that_it_was_never_run(cann, capsys):
    assert main(["doctor", "--device", "ascend:0"]) == 0
    text = capsys.readouterr().out
    assert "pyACL at stand-in, 2 devices, Ascend910B-stand-in" in text and "never run on hardware" in text
    main(["doctor"])
    assert "pyACL at stand-in, 2 devices, Ascend910B-stand-in; the way to it was never run on hardware" in capsys.readouterr().out
