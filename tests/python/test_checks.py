"""`dvm.check`: planted faults are found and named, clean programs are not, and the report speaks of the user's ops and lines."""
import os
import subprocess
import sys

import numpy as np
import pytest
from core_kit import Recorder, arange
from core_programs import run, same_bits
from random_programs import random_program

import dvm_core as dvm
from dvm_core import _core
from dvm_core.checks.report import KINDS, NOTES, AreaReport, Finding, Report

CHIPS = ("npu-sim:910b", "npu-sim:950")
HERE = __file__


def line_of(marker):
    with open(HERE, encoding="utf-8") as file:
        return next(number for number, line in enumerate(file, 1) if line.rstrip().endswith(marker))


@pytest.fixture(autouse=True)
def back_on_the_cpu():
    yield
    dvm.set_deterministic(True)
    dvm.set_device("cpu")


# ---- planted faults ------------------------------------------------------------------------------------------------------------------

def planted(device, fault, use, rows, build):
    """A kernel of a new shape run on a device, a fault put into its code; the launch, what it computed, and the input."""
    dvm.set_device(device)
    x = arange(rows, 96) / 64
    kernel = dvm.kernel(build)
    good = kernel(x)
    program = kernel.program()
    _core.plant_in_code(program.id, 0, use, fault)
    return kernel, x, good


def chain(k, x):
    a = k.load(x, "float32")  # load
    b = k.mul(a, 2.0)  # mul
    c = k.exp(b)  # exp
    d = k.add(c, b)  # add
    return k.store(d)


def faults(kernel):
    """What is wrong with the code in force."""
    report = dvm.check(kernel.program())
    names = _core.check(kernel.program().id)
    found = []
    from dvm_core.checks.areas import findings_of
    from dvm_core.checks.names import Names

    for number, facts in enumerate(names["areas"]):
        found += findings_of(kernel.program().id, number, facts, Names(kernel.program()))
    assert report  # compiled anew it is right: the fault is in the code in force alone
    return found


@pytest.mark.parametrize("device", CHIPS)
def test_a_missing_wait(device):
    kernel, x, good = planted(device, "deaf", 1, 20011, chain)  # the mul waits for nobody
    found = faults(kernel)
    assert {item.kind for item in found} == {"race"}
    loaded = [item for item in found if "read after write" in item.text]
    assert loaded and all(f"MUL b (test_checks.py:{line_of('# mul')}) does not wait for 0 `load.fp32." in item.text for item in loaded)
    assert loaded[0].places[0] == (HERE, line_of("# mul"))
    text = str(loaded[0])
    assert text.startswith(f"{HERE}:{line_of('# mul')}: missing wait: 1 `Muls.fp32.") and "of the UB" in text


@pytest.mark.parametrize("device", CHIPS)
def test_two_values_in_one_place(device):
    kernel, x, good = planted(device, "over", 2, 20012, chain)  # the exp goes over what the add still reads of the mul
    found = [item for item in faults(kernel) if item.kind == "overwritten" and "were written by 2 `Exp" in item.text]
    assert len(found) == 1
    assert "3 `Add.fp32." in found[0].text and "reads what 1 `Muls.fp32." in found[0].text
    assert found[0].places == tuple((HERE, line_of(f"# {op}")) for op in ("add", "exp", "mul"))
    assert not np.array_equal(kernel(x), good)


@pytest.mark.parametrize("device", CHIPS)
def test_a_result_over_part_of_its_operand(device):
    kernel, x, good = planted(device, "alias", 2, 20013, chain)
    found = [item for item in faults(kernel) if item.kind == "alias"]
    assert len(found) == 1 and found[0].places == ((HERE, line_of("# exp")),)
    assert "2 `Exp.fp32." in found[0].text and "of its own operand before it has read them" in found[0].text


@pytest.mark.parametrize("device", CHIPS)
def test_a_result_that_nothing_stores(device):
    kernel, x, good = planted(device, "missing", 4, 40, chain)  # one tile for each core: no pipe waits for another tile
    found = [item for item in faults(kernel) if item.kind == "unwritten"]
    assert len(found) == 1 and found[0].places == ((HERE, line_of("# add")),)
    assert f"stores d, the result of ADD d (test_checks.py:{line_of('# add')})" in found[0].text
    report = dvm.check(kernel, x, device=device)
    here = [item.text for item in report.errors if item.places == found[0].places]
    assert not report and any("of its result are never written" in text for text in here)


@pytest.mark.parametrize("device", CHIPS)
@pytest.mark.parametrize("fault, text", [("short", "never written"), ("stuck", "written more than once")])
def test_bytes_that_are_not_written_or_twice(device, fault, text):
    kernel, x, good = planted(device, fault, 4, 5014 + len(text), chain)  # no two tests share a program
    report = dvm.check(kernel, x, device=device)
    wrong = [item for item in report.errors if item.kind == "unwritten"]
    assert len(wrong) == 1 and wrong[0].places == ((HERE, line_of("# add")),)
    assert wrong[0].text.startswith("ADD: bytes ") and text in wrong[0].text
    assert "not written: ADD: bytes" in str(report) and str(report).rstrip().endswith("found")


def test_a_misuse_of_a_kernel_is_a_finding():
    @dvm.kernel
    def products(k):
        a = k.load([4, 4], "float32")
        return k.store(k.matmul(a, a))  # product

    report = dvm.check(products, device="npu-sim:950")
    assert [(item.rule, item.places) for item in report.errors] == [("chip-dtype", ((HERE, line_of("# product")),))]
    assert "has no MatMul of float32" in str(report) and dvm.device() == "cpu"
    report = dvm.check(products, np.zeros((4, 4), np.float32), device="npu-sim:910b")
    assert [item.rule for item in report.errors] == ["chip-dtype"] and dvm.device() == "cpu"


# ---- clean code ----------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("first", range(0, 1000, 250))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_nothing_is_found_in_a_thousand_random_programs(first):
    areas, effort = 0, int(os.environ.get("EFFORT", "1"))  # EFFORT=20: twenty thousand
    for seed in range(first * effort, (first + 250) * effort):
        program = random_program(seed)
        _, launches = run(program, [len(program.inputs) + len(program.steps) - 1])
        for launch in launches:
            for device in CHIPS:
                found = _core.check(launch.program.id, device)
                for area in found["areas"]:
                    areas += 1
                    wrong = {kind: area[kind] for kind in ("races", "overwrites", "aliases", "unstored") if area[kind]}
                    assert not wrong, f"seed {seed} on {device}: {wrong}"
                    assert all(used <= 8 for used in area["events"].values())
    assert areas > 1000


def test_the_code_in_force_is_clean_too_and_faithful_devices_are():
    for device in (*CHIPS, *(f"{chip}:faithful" for chip in CHIPS)):
        report = dvm.check(dvm.kernel(chain), arange(301, 96) / 64, device=device)
        assert report and not report.findings and report.device == device, str(report)
        assert "nothing wrong: waits, places in the UB, results, every byte that was written" in str(report)


# ---- what lies where -----------------------------------------------------------------------------------------------------------------

def test_the_map_of_the_local_memory_is_in_the_users_words():
    report = dvm.check(dvm.kernel(chain), arange(5000, 96) / 64, device="npu-sim:910b")
    text = str(report)
    assert "chain on npu-sim:910b: 1 program, 1 area" in text
    assert f"float32 loaded for MUL b (test_checks.py:{line_of('# mul')})" in text and "for the whole area" in text
    assert f"float32 of EXP c (test_checks.py:{line_of('# exp')})" in text and "instructions 2 to 3" in text
    assert "of 196,096 bytes of UB" in text and "on npu-sim:950: fits, at most" in text and "of 261,888 bytes" in text
    assert "events used, of 8: load to simd 1" in text
    area = report.areas[0]
    assert area.peak == area.facts["peak"] <= 196096
    held = [area.facts["buffers"][number]["bytes"] for number in area.facts["held"]]
    assert max(end for _, end in held) <= area.peak
    assert all(a[1] <= b[0] for a, b in zip(sorted(held), sorted(held)[1:], strict=False))  # no two in one place
    assert "float32 loaded" not in report.text(maps=False)


def wide(k, x):
    a = k.load(x, "float32")
    values = [k.mul(a, k.exp(k.mul(a, 0.001 * i))) for i in range(24)]  # values
    rows = [k.sub(value, k.max(value, [1], True)) for value in values]
    total = rows[0]
    for row in rows[1:]:
        total = k.mul(total, row)
    return k.store(total)


def test_an_area_that_does_not_fit_is_explained_by_the_users_lines():
    report = dvm.check(dvm.kernel(wide), np.zeros((2, 4000), np.float32), device="npu-sim:910b")
    assert report  # nothing is wrong: it was cut
    (cut,) = [item for item in report.notes if item.kind == "cut"]
    assert "143 ops need 416,128 of 196,096 bytes of UB even in tiles of 1 x 4000" in cut.text
    assert f"for MUL (test_checks.py:{line_of('# values')}), 23 times" in cut.text and "use them sooner" in cut.text
    assert f"runs in {len(report.areas)} areas" in cut.text and cut.places == ((HERE, line_of("# values")),)


def test_an_op_that_does_not_fit_alone_is_an_error_with_its_line():
    def one(k, x):
        a = k.load(x, "float32")
        return k.store(k.sub(a, k.max(a, [1], True)))  # one

    x = np.zeros((3, 4000), np.float32)
    kernel = dvm.kernel(one)
    _core.set_ub_room(15_000)
    try:
        report = dvm.check(kernel, x, device="npu-sim:910b")
        (error,) = report.errors
        assert error.kind == "failed" and error.places == ((HERE, line_of("# one")),)
        assert "of float32[3,1] does not fit the local memory of npu-sim:910b, 15000 bytes, in the smallest" in error.text
        assert "tile there is, which needs 16128: 16000 for an operand, 128 for the result" in error.text
    finally:
        _core.set_ub_room(0)
    assert dvm.check(kernel, x, device="npu-sim:910b")


def test_casts_that_lose_something_on_the_chip():
    def casts(k, x):
        a = k.load(x, "float32")
        return k.store(k.cast(a, "bool")), k.store(k.cast(a, "float16"))  # casts

    report = dvm.check(dvm.kernel(casts), np.ones((3, 4), np.float32), device="npu-sim:950")
    (cast,) = report.notes
    assert cast.kind == "cast" and "from float32 to bool goes by float16 on the chip" in cast.text
    assert cast.places == ((HERE, line_of("# casts")),)


# ---- the order of sums ---------------------------------------------------------------------------------------------------------------

def sums(x):
    r = Recorder()
    result = r.sum(r.input(x), attrs=(0, 0))
    r.graph.flush([result])
    return r.array(result).copy()


def test_sums_whose_value_depends_on_the_order_of_arrival_are_named():
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((20000, 33)) * 10.0 ** rng.integers(-3, 4, (20000, 33))).astype(np.float32)

    @dvm.kernel
    def column_sums(k, x):
        return k.store(k.sum(k.load(x, "float32"), [0]))  # sums

    plain = column_sums(x)
    report = dvm.check(column_sums, x, device="npu-sim:910b")
    (order,) = report.notes
    assert order.kind == "order" and order.places == ((HERE, line_of("# sums")),)
    assert all(part in order.text for part in ("SUM of float32[33] is added from", "over 16 orders of arrival", "set_deterministic()"))
    assert report and same_bits(column_sums(x), plain)  # looked at, not changed
    whole = dvm.check(column_sums, np.ones((20000, 33), np.float32), device="npu-sim:910b")
    assert not whole.notes  # whole numbers: every order gives the same


def test_on_faithful_devices_sums_arrive_in_any_order_if_that_is_asked_for():
    rng = np.random.default_rng(1)
    x = (rng.standard_normal((20001, 33)) * 10.0 ** rng.integers(-3, 4, (20001, 33))).astype(np.float32)
    want = sums(x)
    for device in ("cpu", *CHIPS):
        dvm.set_device(device)
        dvm.set_deterministic(False)
        assert same_bits(sums(x), want)
    dvm.set_device("npu-sim:910b:faithful")
    found = [sums(x) for _ in range(8)]
    assert len({value.tobytes() for value in found}) > 1
    for value in found:
        np.testing.assert_allclose(value, x.astype(np.float64).sum(0), rtol=1e-3, atol=0.5)
    dvm.set_deterministic(True)
    assert same_bits(sums(x), want) and same_bits(sums(x), want)


# ---- what can be checked -------------------------------------------------------------------------------------------------------------

def test_captured_functions_programs_and_numbers():
    @dvm.jit
    def step(a, b):
        return (a @ b).tanh().mean(axis=1)

    with pytest.raises(dvm.ArgumentError, match="has launched nothing yet"):
        dvm.check(step)
    x = dvm.tensor(arange(30, 30) / 900)
    report = dvm.check(step, x, x, device="npu-sim:950")
    assert report and report.ran and [name for _, name in report.programs] == [step.__qualname__]
    program = next(item for item in dvm.programs() if item.id == report.programs[0][0])
    for target in (step, program, program.core, program.id):
        again = dvm.check(target)
        assert again and not again.ran and again.device == "npu-sim:910b" and len(again.areas) >= 1
    dvm.set_device("npu-sim:950:faithful")
    assert dvm.check(step).device == "npu-sim:950:faithful"
    with pytest.raises(dvm.ArgumentError, match="'cpu' is no simulated device, whose rules could be checked; there are npu-sim:910b"):
        dvm.check(step, device="cpu")


def test_what_a_captured_program_has_no_instruction_for_on_the_chip():
    @dvm.jit
    def step(a, b):
        h = (a @ b).tanh()  # tanh
        return (h * h.tanh()).max(axis=1)

    x = dvm.tensor(arange(30, 31) / 900)
    lacks = {item.text.partition(":")[0]: item for item in dvm.check(step, x, x.transpose(1, 0)).notes if item.kind == "lacks"}
    assert lacks.keys() == {"MATMUL of float32", "TANH of float32, 2 times"}
    assert lacks["MATMUL of float32"].places == ((HERE, line_of("# tanh")),)


def test_a_call_without_arguments():
    k = dvm.Kernel("vector")
    x = k.load([50, 60], "float32")
    out = k.store(k.exp(x))
    k.input(x, np.zeros((50, 60), np.float32))
    report = dvm.check(k.run, device="npu-sim:950")
    assert report and report.ran and report.programs and report.areas[0].facts["device"] == "npu-sim:950"
    np.testing.assert_array_equal(k.output(out), np.ones((50, 60)))

    def body():
        dvm.kernel(chain)(arange(302, 96) / 64)

    assert [name for _, name in dvm.check(body).programs] == ["chain"]


def test_kernel_objects_and_kernels_of_any_shape():
    with pytest.raises(dvm.ArgumentError, match=r"chain takes any shape.*check\(kernel, \*arrays\)"):
        dvm.check(dvm.kernel(chain))
    k = dvm.Kernel("vector", "das")
    k.store(k.exp(k.load([40, 50], "float32")))
    report = dvm.check(k)
    assert report and report.areas[0].facts["device"] == "npu-sim:910b"


def test_kinds_of_findings():
    assert set(NOTES) <= KINDS.keys()


SCRIPT = """
import sys
import numpy as np
import dvm

@dvm.kernel
def doubled(k, x):
    return k.store(k.mul(k.load(x, "float32"), 2.0))

@dvm.kernel
def mixed(k):
    return k.store(k.matmul(k.load([4, 4], "float32"), k.load([4, 4], "float32")))

if __name__ == "__main__":
    assert dvm.device() == "npu-sim:950", dvm.device()
    doubled(np.ones((50, 60), np.float32))
    sys.exit(3)
"""


def test_the_command(tmp_path):
    script = tmp_path / "kern els é.py"
    script.write_text(SCRIPT, encoding="utf-8")

    def command(*arguments):
        return subprocess.run([sys.executable, "-m", "dvm_core", "check", *arguments], capture_output=True, text=True, check=False)

    whole = command(str(script), "--device", "npu-sim:950")
    assert whole.returncode == 3 and "program 1 doubled" in whole.stdout and "loaded for MUL" in whole.stdout, whole.stdout + whole.stderr
    assert "nothing wrong: waits, places in the UB, results, every byte that was written" in whole.stdout
    assert "loaded for MUL" not in command(str(script), "--brief", "--device", "npu-sim:950").stdout
    one = command(f"{script}:mixed")
    assert one.returncode == 1 and "npu-sim:910b (AscendC220) has no MatMul of float32" in one.stdout and "1 fault found" in one.stdout
    assert f"{script}:12: misuse" in one.stdout
    for arguments, text in (([f"{script}:doubled"], "doubled takes any shape"), ([str(script), "--device", "cpu"], "no simulated device"),
                            (["x.txt"], "neither a script nor"), (["no.py"], "there is no file 'no.py'"),
                            ([f"{script}:nothing"], "has no 'nothing'")):
        failed = command(*arguments)
        assert failed.returncode == 1 and text in failed.stderr, (arguments, failed.stderr)


def test_what_launches_nothing_is_not_said_to_be_right(tmp_path):
    for report in (dvm.check(lambda: 3), dvm.check(np.exp, np.ones(3))):
        assert not report and not report.errors and str(report).endswith("\nnothing was launched, so nothing was checked\n")
    for text, code in (("print('hello')", 1), ("import sys; sys.exit(3)", 1), ("def f(:", 1), ("1 / 0", 1)):
        (tmp_path / "a.py").write_text(text)
        command = [sys.executable, "-m", "dvm_core", "check", str(tmp_path / "a.py")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == code and "nothing was launched, so nothing was checked" in done.stdout and "dvm_core" not in done.stderr


def test_areas_in_a_row_that_are_alike_are_told_once():
    def area(number, rows):
        facts = {"kind": "vector", "tile": (rows, 8), "tiles": 4, "peak": 64, "limit": 128, "buffers": [], "events": {}}
        return AreaReport(1, number, facts, None)
    areas = [area(0, 1), *(area(n, 2) for n in range(1, 8))]
    report = Report("npu-sim:910b", "f", [Finding("cast", "slow", (("f.py", 3),))], areas, [(1, "f")])
    lines = str(report).splitlines()
    assert lines[2:4] == ["  area 0: vector, 4 tiles of 1 x 8, 64 of 128 bytes of UB (50 %)",
                          "  areas 1 to 7 alike: vector, 4 tiles of 2 x 8, 64 of 128 bytes of UB (50 %)"]
    assert lines[4] == "f.py:3: note: cast: slow" and lines[5].startswith("nothing wrong") and report


def test_code_of_the_cpu_with_strips_has_no_ub():
    x = arange(40, 70) / 64
    dvm.tensor(x).softmax(-1).numpy()
    ((dvm.tensor(x) * 2 + 1).exp() * dvm.tensor(x)).numpy()
    programs = _core.programs()[-2:]
    assert any("strip" in program.tile_text(0) for program in programs)
    for program in programs:
        for area in _core.check(program.id)["areas"]:
            assert area["device"] == "cpu" and area["tiles"] > 0
            for key in ("uses", "buffers", "held", "races", "events", "overwrites", "aliases", "unstored", "limit"):
                assert not area[key], (key, area)
