"""How many of the edit pairs in tests/data/edits a way of reloading does rightly: ours, jurigged's, debugpy's autoReload.

Each case runs in a fork of its own, in which the text is loaded, the new text saved over it and reloaded as the contender does it. Right is
what the case says must hold then, with names that stand for the objects they stood for and no top-level code run twice; a pair that
cannot be made in a running program must change nothing. What a contender answers is not judged."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from timing import Share

TESTS = Path(__file__).resolve().parent.parent / "tests" / "python"
WAIT = 20.0  # seconds for a case
Prepare = Callable[[ModuleType, str], Callable[[], None]]


def _dvm(module: ModuleType, path: str) -> Callable[[], None]:
    from dvm_core import _core
    from dvm_core.frontends import capture, reloadable
    from dvm_core.hotreload import Host, Reloader, SourceBook
    from dvm_core.hotreload import reloader as timing

    timing.BOUNDARY_WAIT = 0.05  # most cases capture nothing
    book = SourceBook()
    book.remember(path)
    host = Host(reloadable, _core.programs, step=reloadable.step, capturing=lambda: bool(capture.captures()))
    reloader = Reloader(book, host)

    def run() -> None:
        answered = threading.Event()
        reloader.reload(path, None, lambda report: answered.set())
        answered.wait(WAIT)
    return run


def _jurigged(module: ModuleType, path: str) -> Callable[[], None]:
    from jurigged.register import registry

    registry.prepare(module.__name__, path)
    found = registry.get(path)
    return lambda: found.refresh()


def _debugpy(module: ModuleType, path: str) -> Callable[[], None]:
    import debugpy._vendored.force_pydevd  # noqa: F401 - makes pydevd's modules importable
    from _pydevd_bundle import pydevd_reload

    return lambda: pydevd_reload.xreload(module)


CONTENDERS: dict[str, tuple[str, Prepare]] = {
    "dvm": ("dvm_core", _dvm), "jurigged": ("jurigged", _jurigged), "debugpy autoReload": ("debugpy", _debugpy),
}


def _rightly(case: Any, load: Callable[[Path, str], ModuleType], path: Path, prepare: Prepare) -> bool:
    path.write_bytes(case.data("before"))
    module = load(path, path.stem)
    names = vars(module)
    ran = list(names["top_level"])
    first = {name: value for name, value in names.items() if getattr(value, "__module__", None) == module.__name__}
    kept: dict[str, Any] = {}
    with contextlib.suppress(Exception):  # as the test does: state that it changes is part of the case
        eval(case["undo"] or case["check"], names)
    for line in case.said.get("keep", []):
        name, text = line.split(" = ", 1)
        kept[name] = eval(text, {**names, **kept})
    run = prepare(module, str(path))
    path.write_bytes(case.data("after"))
    ended = threading.Event()

    def reload() -> None:
        with contextlib.suppress(Exception):  # a refusal, in the words of some
            run()
        ended.set()
    thread = threading.Thread(target=reload)
    thread.start()
    text = case["call"] or "None"
    while not ended.wait(0.001):  # the program goes on
        eval(text, {**names, **kept})
    return (bool(eval(case["check"], {**names, **kept})) and names["top_level"] == ran
            and all(names.get(name) is value for name, value in first.items()))


def _in_a_fork(run: Callable[[], bool]) -> bool:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        right = False
        with contextlib.suppress(BaseException):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            right = run()
        os.write(writer, b"1" if right else b"0")
        os._exit(0)
    os.close(writer)
    ready, _, _ = select.select([reader], [], [], WAIT)
    told = os.read(reader, 1) if ready else b""
    os.close(reader)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return told == b"1"


def _there(module: str) -> bool:
    try:
        __import__(module)
    except ImportError:
        return False
    return True


def measured(quick: bool, folder: Path) -> Iterator[Share]:
    """A share for the pairs that can be made, and one for all. Contenders that are not installed are left out."""
    sys.path.insert(0, str(TESTS))
    from reload_cases import CASES, Case, load

    sys.dont_write_bytecode = True
    cases = [Case(path) for path in CASES[::10 if quick else 1]]
    right: dict[str, list[bool]] = {}
    for name, (module, prepare) in CONTENDERS.items():
        if _there(module):
            right[name] = [_in_a_fork(lambda c=case, n=number, p=prepare: _rightly(c, load, folder / f"pair_{n}.py", p))
                           for number, case in enumerate(cases)]
    can = [case["outcome"] == "applied" for case in cases]
    for what, chosen in (("that a running program can take", can), ("of all kinds", [True] * len(cases))):
        shares = {name: sum(r for r, c in zip(found, chosen, strict=True) if c) / sum(chosen) for name, found in right.items()}
        yield Share(f"reload: {sum(chosen)} edits {what}, done rightly", shares)
