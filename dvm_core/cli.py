"""The `dvm` command: run or debug a script, disassemble, check the installation, start the debug adapter."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import __version__, devices, scripts
from .errors import ArgumentError, Error

_RELOAD = 120.0  # seconds for a running program to answer; it gives itself less for all files

def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code: 0 done, 1 something is wrong, 2 the command line itself is."""
    parser = _parser()
    arguments, rest = parser.parse_known_args(argv)
    if rest and not hasattr(arguments, "module"):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    arguments.rest = rest
    try:
        return arguments.command(arguments) or 0
    except (Exception, KeyboardInterrupt) as error:
        if arguments.command is not _module and scripts.tell(error):
            return 130 if isinstance(error, KeyboardInterrupt) else 1
        if isinstance(error, BrokenPipeError):  # who reads has read enough, as `head` does
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
        if not isinstance(error, Error):
            raise
        print(f"dvm: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("dvm", description="Run, inspect and debug tensor programs.")
    parser.add_argument("--version", action="version", version=f"dvm {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    run = commands.add_parser("run", help="run a script; `import dvm` in it is this package")
    run.add_argument("--device", default="cpu", help="device of all launches (default: cpu)")
    run.add_argument("--stats", action="store_true", help="print at the end where the VM's own time went, by captured function")
    run.add_argument(
        "--advise",
        action="store_true",
        help="print at the end for which captured functions the VM pays, and why; some calls are compared with the framework's own",
    )
    run.add_argument(
        "--warm", metavar="FILE", help="compile the shapes of the last run, kept in FILE, before they come; FILE is written anew at the end"
    )
    run.add_argument(
        "--watch", action="store_true", help="hot reload: bring what is saved into the running program, and print what came of it"
    )
    run.add_argument("script")
    run.add_argument("args", nargs=argparse.REMAINDER, help="arguments of the script").required = False
    run.set_defaults(command=_run)

    dis = commands.add_parser("dis", help="disassemble a .msbc file, or the programs of a function: file.py:function")
    dis.add_argument("what", metavar="FILE.msbc | FILE.py:FUNCTION")
    dis.add_argument(
        "--level",
        choices=("graph", "tensor", "tile"),
        help="graph: DVM's dump; tensor: instructions by area; tile: tile code (default: all)",
    )
    dis.add_argument("--passes", action="store_true", help="what each pass of the compiler made of it instead")
    dis.add_argument("--descriptors", action="store_true", help="what each instruction needs and what would run it on each device instead")
    dis.add_argument("--json", action="store_true", help="FILE.msbc: what it says as JSON instead")
    dis.add_argument("--most", type=int, metavar="N", help="with --json: the first N instructions only")
    dis.add_argument("--device", help="run FILE.py on it, for its tile code; with --descriptors: this device only, for instance ascend:0")
    dis.add_argument("--run", action="store_true", help="run FILE.py as a script first (default: import it), so that kernels are called")
    dis.set_defaults(command=_dis)

    check = commands.add_parser("check", help="check a script, or file.py:function, by the rules of a simulated NPU")
    check.add_argument("what", metavar="FILE.py | FILE.py:FUNCTION")
    check.add_argument("--device", default="npu-sim:910b", help="whose rules (default: npu-sim:910b)")
    check.add_argument("--brief", action="store_true", help="without what lies where in the local memory")
    check.add_argument("--run", action="store_true", help="FILE.py:FUNCTION: run FILE.py as a script first (default: import it)")
    check.add_argument("args", nargs="*", help="FILE.py: arguments of the script (behind -- where they begin with -)")
    check.set_defaults(command=_check)

    doctor = commands.add_parser("doctor", help="check the installation and say what to do")
    doctor.add_argument(
        "--ops", nargs="*", metavar="OP", help="check every op (or these) against float64 NumPy, in every mode, and against the frameworks"
    )
    doctor.add_argument("--device", help="look at this device: is it there, what does each op run on")
    doctor.add_argument(
        "--coverage", nargs=argparse.REMAINDER, metavar="SCRIPT", help="run a script (with arguments) and print which of its ops ran where"
    )
    doctor.set_defaults(command=_doctor)

    adapter = commands.add_parser("adapter", help="start the debug adapter (on stdio, or --listen HOST:PORT)", add_help=False)
    adapter.set_defaults(command=_module, module="dvm_adapter", what="the debug adapter")

    debug = commands.add_parser("debug", help="debug a script in the terminal: dvm debug SCRIPT [ARGS]", add_help=False)
    debug.set_defaults(command=_module, module="dvm_adapter.terminal", what="the terminal debugger")

    reload = commands.add_parser("reload", help="bring saved files into a running program: dvm reload [--undo] PID [FILE]")
    reload.add_argument("pid", type=int, help="its process id")
    reload.add_argument("file", nargs="*", metavar="FILE", help="what was saved (default: all files of the program that were)")
    reload.add_argument("--undo", action="store_true", help="take back the last edit that is in force, of FILE or of all")
    reload.set_defaults(command=_reload)

    lsp = commands.add_parser("lsp", help="start the language server", add_help=False)
    lsp.set_defaults(command=_module, module="dvm_adapter.lsp", what="the language server")
    return parser


def _served(name: str, args: list[str], device: str) -> Path:
    """A script that is to be run here with these arguments, `import dvm` served."""
    script = Path(name)
    if not script.is_file():
        raise ArgumentError(f"there is no script {name!r}")
    devices.set_device(device)
    scripts.serve_dvm()
    sys.argv = [name, *args]
    sys.path.insert(0, str(script.resolve().parent))
    return script


def _run(arguments: argparse.Namespace) -> int:
    from . import lastrun

    script = _served(arguments.script, arguments.args, arguments.device)
    if arguments.advise:
        from .frontends import sampling

        sampling.on = True
    if arguments.warm:
        _know_shapes(Path(arguments.warm))
    saves = None
    if arguments.watch:
        from . import onsave

        script = Path(os.path.abspath(script))  # as Python names it to a script: known wherever the program goes
        saves = onsave.watched(script)
    try:
        runpy.run_path(str(script), run_name="__main__")
    finally:
        if saves is not None:
            saves.stop()
        lastrun.Recorder().look(at_once=True)
        if arguments.warm:
            _save_shapes(Path(arguments.warm))
        if arguments.stats:
            from . import stats, timetable

            told = stats()
            print(timetable.text(told), timetable.selector(told), sep="\n\n", file=sys.stderr)
        if arguments.stats or arguments.advise:
            _print_advice(arguments.stats, arguments.advise)
    return 0


def _print_advice(below: bool, compared: bool) -> None:
    from . import _core, advice

    found = advice.of(_core.stats())
    if found:
        print("\n" * below + advice.text(found, compared), file=sys.stderr)
    elif not below:
        print("no captured function was launched, so there is nothing to advise on (kernels are not judged)", file=sys.stderr)


def _know_shapes(path: Path) -> None:
    from . import warm

    if not warm.is_ours(path):
        raise ArgumentError(f"{str(path)!r} is no file of shapes: left alone, and nothing was run. --warm FILE is written anew at the end")
    if not warm.load(path):
        why = "there are none that can be used" if path.exists() else "it is not there yet"
        print(f"dvm: no shapes read from {str(path)!r}: {why}", file=sys.stderr)


def _save_shapes(path: Path) -> None:
    from . import warm

    try:
        warm.save(path)
    except OSError as error:
        print(f"dvm: the shapes of this run are not kept: {error}", file=sys.stderr)


def _dis(arguments: argparse.Namespace) -> int:
    from .checks.run import on
    from .devices import report

    chosen = [f"--{name}" for name in ("level", "passes", "descriptors", "json") if getattr(arguments, name)]
    if len(chosen) > 1:
        raise ArgumentError(f"{chosen[0]} does not go with {chosen[1]}: each says what is shown")
    if arguments.descriptors:
        report.ends(arguments.device)
    if arguments.what.endswith(".msbc"):
        if arguments.device and not arguments.descriptors:
            raise ArgumentError("--device of a .msbc file goes with --descriptors; tile code for a device: FILE.py:FUNCTION")
        return _dis_file(Path(arguments.what), arguments)
    if arguments.json:
        raise ArgumentError("--json goes with FILE.msbc")
    path, _, name = arguments.what.rpartition(":")
    if not path.endswith(".py") or not name:
        raise ArgumentError(f"{arguments.what!r} is neither a .msbc file nor file.py:function")
    if not Path(path).is_file():
        raise ArgumentError(f"there is no file {path!r}")
    with contextlib.nullcontext() if arguments.descriptors or not arguments.device else on(arguments.device):
        return _dis_function(Path(path), name, arguments)


def _dis_function(path: Path, name: str, arguments: argparse.Namespace) -> int:
    from .devices import report

    target = scripts.resolve(path, name, arguments.run)
    found = _programs_of(target, name)
    levels = [arguments.level] if arguments.level else ["graph", "tensor", "tile"]
    if not found:
        more = f"Call it when {path} is imported" + ("" if arguments.run else ", or pass --run to run the file as a script")
        if not hasattr(target, "dump"):
            raise ArgumentError(f"{name} has not been called, so there is no program of it. {more}")
        if arguments.descriptors or arguments.passes or arguments.device or levels[0] != "graph":
            raise ArgumentError(f"{name} takes any shape and has not been called, so there is no code of it, only its graph. {more}")
        print(f"// {name} has loads of any shape and was not called: the graph as built. {more}")
        print(target.dump(), end="")
    for program in found if arguments.descriptors else ():
        print(f"// program {program.id} {program.name}: descriptors")
        print(report.text(program.code, arguments.device))
    for program in () if arguments.descriptors else found:
        for name, text in program.passes() if arguments.passes else ():
            print(f"// program {program.id} {program.name}: after {name}")
            print(text)
        for level in () if arguments.passes else levels:
            print(f"// program {program.id} {program.name}: {level} level")
            print(program.text(level)[0])
    return 0


def _check(arguments: argparse.Namespace) -> int:
    from .checks import Report, check
    from .checks.run import chip, watch

    path, _, name = arguments.what.rpartition(":") if not arguments.what.endswith(".py") else (arguments.what, "", "")
    if not path.endswith(".py"):
        raise ArgumentError(f"{arguments.what!r} is neither a script nor file.py:function")
    if not Path(path).is_file():
        raise ArgumentError(f"there is no file {path!r}")
    if name:
        code, found = 0, check(scripts.resolve(Path(path), name, arguments.run), device=arguments.device)
    else:
        scripts.serve_dvm()
        sys.argv = [path, *arguments.args]
        sys.path.insert(0, str(Path(path).resolve().parent))
        found = Report(chip(arguments.device), path)
        ended: list[int] = []
        watch(found, lambda: ended.append(scripts.run(path)))
        code = ended[0] if ended else 1
    print(found.text(maps=not arguments.brief), end="")
    return code if found else 1


def _dis_file(path: Path, arguments: argparse.Namespace) -> int:
    from .devices import report
    from .msbc import disassemble, load

    if not path.is_file():
        raise ArgumentError(f"there is no file {str(path)!r}")
    data = path.read_bytes()
    if arguments.json:
        from .msbc.facts import facts

        json.dump(facts(data, arguments.most), sys.stdout, allow_nan=False)
        return 0
    print(report.text(load(data).code, arguments.device) if arguments.descriptors else disassemble(data), end="")
    return 0


def _programs_of(target: Any, name: str) -> list[Any]:
    from . import programs
    from .frontends.builder import KernelFunction

    if isinstance(target, KernelFunction) and target.program() is None and target.fixed:
        target.das()  # makes the code of a kernel whose shapes are all known
    wanted = {name, getattr(target, "__qualname__", name)}
    return [program for program in programs() if program.name in wanted]


def _reload(arguments: argparse.Namespace) -> int:
    import dvm_wire
    from dvm_wire.doors import Shut, knock

    refused = False
    for file in arguments.file or [None]:
        if file is not None and not os.path.isfile(file):
            raise ArgumentError(f"there is no file {file!r}")
        try:
            asked = {"cmd": "undo" if arguments.undo else "reload", "path": file and os.path.abspath(file)}
            told = knock(arguments.pid, asked, timeout=_RELOAD)
        except Shut as error:
            raise ArgumentError(f"process {arguments.pid} {error}") from None
        for report in told.get("reports", ()):
            print(dvm_wire.outcome(report))
            refused |= report["outcome"] == "refused"
        if not told.get("ok"):
            raise ArgumentError(str(told.get("error")))
        if not told["reports"]:
            print("no file of the program was saved since")
    return 1 if refused else 0


def _doctor(arguments: argparse.Namespace) -> int:
    color = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    if arguments.coverage is not None:
        return _doctor_coverage(arguments.coverage, arguments.device or "cpu")
    if arguments.ops is not None and arguments.device is not None:
        raise ArgumentError("--device does not go with --ops, which checks this processor; --device D alone says what runs each op there")
    if arguments.ops is not None:
        return _doctor_ops([op.upper() for op in arguments.ops], color)
    if arguments.device is not None:
        from .devices.doctor import report as of_device

        return of_device(arguments.device)
    from .doctor import report

    return report(color)


def _doctor_coverage(command: list[str], device: str) -> int:
    from . import coverage
    from .frontends import observed

    script = _served(command[0] if command else "", command[1:], device)
    observed.timed = True
    try:
        runpy.run_path(str(script), run_name="__main__")
    finally:
        print(coverage.report())
    return 0


def _doctor_ops(ops: list[str], color: bool) -> int:
    from .opcheck.cases import OPS
    from .opcheck.report import report

    unknown = [op for op in ops if op not in OPS]
    if unknown:
        raise ArgumentError(f"there is no op {', '.join(unknown)}; there are {', '.join(OPS)}")
    return report(ops or None, color)


def _module(arguments: argparse.Namespace) -> int:
    # Its options are its own: all that is not ours is handed on.
    module, what = arguments.module, arguments.what
    package = module.partition(".")[0]
    if importlib.util.find_spec(package) is None or importlib.util.find_spec(module) is None:
        print(
            f"dvm: {what} is not part of this version or not installed (no module {module}). What is installed and what is not: dvm doctor",
            file=sys.stderr,
        )
        return 2
    sys.argv = [module, *arguments.rest]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
