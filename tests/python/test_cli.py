"""The dvm command as a user types it."""

import os
import pathlib
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import dvm_core as dvm
from dvm_core import doctor, msbc
from dvm_core.msbc import Code, Input, Instruction


def run(*arguments, cwd=None):
    done = subprocess.run([sys.executable, "-m", "dvm_core", *map(str, arguments)], capture_output=True, text=True, cwd=cwd, timeout=120)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def script(tmp_path):
    folder = tmp_path / "a folder & größe"
    folder.mkdir()

    def write(text, name="kernel.py"):
        path = folder / name
        path.write_text(textwrap.dedent(text))
        return path

    return write


KERNEL = """
    import sys
    import numpy as np
    import dvm

    @dvm.kernel
    def scaled(k, x):
        return k.store(k.mul(k.load(x, dvm.float32), 2.0))

    @dvm.kernel
    def fixed(k):
        return k.store(k.exp(k.load([4, 8], "float32")))

    @dvm.jit
    def step(x):
        return x.exp() + 1

    if __name__ == "__main__":
        print(scaled(np.ones(3, np.float32)), sys.argv[1:])
        step(dvm.tensor(np.ones(5, np.float32)))
"""


def test_run_serves_import_dvm_and_passes_arguments(script):
    path = script(KERNEL)
    code, out, err = run("run", path, "--fast", "7")
    assert (code, out) == (0, "[2. 2. 2.] ['--fast', '7']\n"), err


def test_run_finds_modules_beside_the_script_and_gives_its_exit_code(script):
    script("answer = 42", "beside.py")
    path = script("import sys, beside; sys.exit(beside.answer)", "main.py")
    assert run("run", path)[0] == 42


def test_run_prints_where_the_time_went(script):
    path = script(KERNEL)
    code, out, err = run("run", "--stats", path)
    lines = err.splitlines()
    assert code == 0 and out.startswith("[2. 2. 2.]"), err
    assert lines[0].split()[:3] == ["function", "launches", "record"] and any(line.split()[:1] == ["all"] for line in lines)
    assert any(line.startswith("selector: 0.0% of ") for line in lines)


def test_doctor_says_which_ops_of_a_script_ran_where(script):
    code, out, err = run("doctor", "--coverage", script(KERNEL), "--fast")
    assert code == 0 and "['--fast']" in out, err
    rows = [line.split() for line in out.splitlines()]
    assert ["EXP", "us", "1"] in rows and ["ADD", "us", "1"] in rows and rows[-1][0] == "100.0%"
    assert next(row for row in rows if row[:1] == ["step"])[1:3] == ["1", "2"]


def test_an_exception_of_the_script_is_its_own(script):
    code, _, err = run("run", script("def f():\n    raise ValueError('mine')\nf()"))
    assert code == 1 and "kernel.py" in err and err.rstrip().endswith("ValueError: mine")


def test_frames_are_the_users_own(script):
    path = script("""
        import numpy as np
        import dvm

        @dvm.kernel
        def added(k, a, b):
            return k.store(k.add(k.load(a, "float32"), k.load(b, "float32")))

        def layer(n):
            return added(np.ones((2, 3), np.float32), np.ones(3 + n, np.float32))

        layer(1)
    """)
    code, _, err = run("run", path)
    assert code == 1 and "in layer\n" in err and "in <module>\n" in err and "broadcast" in err
    assert "cli.py" not in err and "runpy" not in err and f"dvm_core{os.sep}" not in err
    code, _, err = run("run", script("try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise OSError('x') from e"))
    assert code == 1 and "ZeroDivisionError" in err and err.endswith("OSError: x\n") and "cli.py" not in err and "runpy" not in err
    code, _, err = run("run", script("import dvm\ndef f(:\n"))
    assert code == 1 and err.startswith("  File ") and "SyntaxError" in err and "runpy" not in err
    code, _, err = run("run", script("raise KeyboardInterrupt"))
    assert code == 130 and err.count("  File ") == 1 and err.endswith("KeyboardInterrupt\n")
    code, _, err = run("dis", f"{script('raise ValueError(3)')}:f")
    assert code == 1 and err.count("  File ") == 1 and err.endswith("ValueError: 3\n")


@pytest.mark.parametrize(
    "device, text",
    [
        ("npu-sim:910c", "there is no device 'npu-sim:910c'; available: 'cpu', 'npu-sim:910b'"),
        ("ascend:0", "an Ascend device needs pyACL, which cannot be imported"),
        ("tpu", "there is no device 'tpu'; available: 'cpu'"),
    ],
)
def test_other_devices_are_refused_clearly(device, text, script):
    code, out, err = run("run", "--device", device, script("print('ran')"))
    assert code == 1 and text in err and "ran" not in out and "Traceback" not in err
    with pytest.raises(dvm.DeviceError):
        dvm.set_device(device)


def test_a_script_runs_on_a_simulated_npu(script):
    code, out, err = run("run", "--device", "npu-sim:910b", script("""
import numpy as np, dvm_core as dvm
print(dvm.device(), (dvm.tensor(np.arange(4.0, dtype=np.float32)) * 2 + 1).numpy(), "load.fp32" in dvm.programs()[-1].text("tile")[0])
"""))
    assert (code, out.strip()) == (0, "npu-sim:910b [1. 3. 5. 7.] True"), err


def test_the_device_is_cpu():
    dvm.set_device("cpu")
    assert dvm.device() == "cpu" and dvm.Device.core_num() >= 1 and dvm.Device.arch() == "CPU"


def test_dis_of_a_file(tmp_path):
    path = tmp_path / "p.msbc"
    path.write_bytes(msbc.dump(Code("f", [Input(1, (3,))], [Instruction(0x12, (0,), (3,), 1)], [1])))
    code, out, _ = run("dis", path)
    assert code == 0 and "%1 = EXP(%i0) f32[3]" in out
    path.write_bytes(b"MSBC")
    code, _, err = run("dis", path)
    assert code == 1 and "MSBC: at offset 0x4" in err and "Traceback" not in err


def test_dis_of_functions(script):
    path = script(KERNEL)
    code, out, err = run("dis", f"{path}:fixed")
    assert code == 0 and "Exp(%0[4,8]<float32>)" in out and "%1 = EXP(%i0) f32[4,8]" in out and "Exp.fp32" in out, err
    code, out, _ = run("dis", f"{path}:scaled")
    assert code == 0 and "rgraph.split() {" in out and "Mul<2.0>" in out and "not called" in out
    code, out, _ = run("dis", "--run", "--level", "tensor", f"{path}:step")
    assert code == 0 and "%1 = EXP(%i0) f32[5]" in out and "kernel.py:" in out
    code, _, err = run("dis", f"{path}:step")
    assert code == 1 and "has not been called" in err and "--run" in err


def test_dis_of_a_kernel_of_any_shape_names_run_and_shows_a_chips_code(script):
    what = f"{script(KERNEL)}:scaled"
    assert "--run" in run("dis", what)[1]
    for option in (["--descriptors"], ["--passes"], ["--level", "tile"], ["--device", "npu-sim:910b"]):
        code, out, err = run("dis", *option, what)
        assert code == 1 and "--run" in err and not out
    code, out, err = run("dis", "--run", "--device", "npu-sim:910b", "--level", "tile", what)
    assert code == 0 and "load.fp32" in out, err
    code, _, err = run("dis", "--run", "--device", "npu-sim:999", what)
    assert code == 1 and "there is no device 'npu-sim:999'; available" in err
    code, _, err = run("check", what)
    assert code == 1 and "--run" in err


@pytest.mark.parametrize(
    "what, text", [("missing.msbc", "there is no file"), ("missing.py:f", "there is no file"), ("x.txt", "neither a .msbc file nor")]
)
def test_dis_says_what_is_wrong(what, text, tmp_path):
    code, _, err = run("dis", what, cwd=tmp_path)
    assert code == 1 and text in err and "Traceback" not in err


def test_dis_names_a_function_that_is_not_there(script):
    code, _, err = run("dis", f"{script(KERNEL)}:nothing")
    assert code == 1 and "has no 'nothing'" in err


def test_doctor_finds_this_installation_in_order():
    code, out, _ = run("doctor")
    assert code == 0 and out.rstrip().endswith("everything needed is there")
    assert "native core" in out and "a small program" in out and "computes (within " in out and " ulp of float64 NumPy" in out


def test_a_reader_that_has_read_enough_is_no_error():
    command = [sys.executable, "-u", "-m", "dvm_core", "doctor", "--device", "cpu"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b"" and process.wait(60) == 1


def test_what_launches_nothing_has_no_times_and_no_advice(script):
    path = script("print('hello')")
    code, out, err = run("run", "--stats", path)
    assert code == 0 and err.startswith("nothing was launched, so there are no times to tell\n") and "no launch asked it for code" in err
    code, out, err = run("run", "--advise", path)
    assert code == 0 and "no captured function was launched" in err


def test_programs_and_kernels_are_printed_shortly():
    @dvm.kernel
    def doubled(k, x):
        return k.store(k.mul(k.load(x, "float32"), 2.0))

    doubled(np.ones(3, np.float32))
    assert "doubled: 1 arguments, 1 results>" in repr(doubled)
    assert repr(dvm.programs()[-1]).startswith(f"<program {dvm.programs()[-1].id} ") and "launched 1 times>" in repr(dvm.programs()[-1])


def test_doctor_says_what_to_do(monkeypatch, capsys):
    finding = doctor.Finding(doctor.BROKEN, "native core", "No module named 'dvm_core._core'", "build it: make setup")
    missing = doctor.Finding(doctor.MISSING, "torch", "not installed", "pip install torch")
    monkeypatch.setattr(doctor, "CHECKS", (lambda: finding, lambda: missing))
    assert doctor.report() == 1
    out = capsys.readouterr().out
    assert (
        "!!  native core" in out and "build it: make setup" in out and "pip install torch" in out and "not in order: native core\n" in out
    )


def test_a_wrong_version_is_named(monkeypatch):
    check = doctor._package("numpy", "0.0.1", "tested", "pip install numpy==0.0.1")
    assert check().state == doctor.BROKEN and np.__version__ in check().detail


def test_options_of_the_adapter_are_the_adapters():
    code, out, err = run("adapter", "--listen", "127.0.0.1:none")
    assert code == 2 and "dvm_adapter" in err and "'127.0.0.1:none' is not HOST:PORT" in err
    code, out, err = run("doctor", "--listen")
    assert code == 2 and "unrecognized arguments: --listen" in err


def test_lsp_says_it_is_not_there_if_it_is_not():
    import importlib.util

    if importlib.util.find_spec("dvm_adapter") and importlib.util.find_spec("dvm_adapter.lsp"):
        pytest.skip("there is a language server")
    code, out, err = run("lsp")
    assert code == 2 and not out and "the language server is not part of this version" in err


def test_usage_and_version():
    code, _, err = run("run")
    assert code == 2 and err.endswith("required: script\n")
    code, _, err = run()
    assert code == 2 and "usage: dvm" in err
    assert run("--version")[1] == f"dvm {dvm.__version__}\n"


def test_an_import_brings_in_no_framework_and_little_of_ours():
    text = "import sys, dvm_core; print(*sorted(sys.modules))"
    modules = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "mindspore", "torch", "debugpy", "asyncio"} & set(modules)
    ours = {name for name in modules if name.startswith("dvm_core")}
    assert ours == {"dvm_core", "dvm_core._core", "dvm_core.door", "dvm_core.dtypes", "dvm_core.errors"}


def test_without_a_native_build_the_doctor_still_starts(tmp_path):
    source = pathlib.Path(dvm.__file__).parent
    copy = tmp_path / "dvm_core"
    copy.mkdir()
    for path in source.rglob("*.py"):
        target = copy / path.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    text = (
        "import sys; sys.meta_path = [f for f in sys.meta_path if isinstance(f, type)]; "
        f"sys.path.insert(0, {str(tmp_path)!r}); import dvm_core.cli; sys.exit(dvm_core.cli.main(['doctor']))"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert done.returncode == 1 and "!!  native core" in done.stdout and "make setup" in done.stdout, done.stdout + done.stderr
