"""Every edit in tests/data/reload: one line of expectation each, one generated test for all."""
import importlib.util
import sys
import time
from pathlib import Path

import pytest

from dvm_core.hotreload import Host, Reloader, SourceBook

DATA = Path(__file__).parent.parent / "data" / "reload"


def cases():
    for line in (DATA / "cases.txt").read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            name, outcome, check, says = ([part.strip() for part in line.split(" | ")] + [""])[:4]
            yield pytest.param(name, outcome, check, says, id=name)


class NextCall:
    """A boundary at which a captured call is always about to begin, and passes."""

    def at_next_call(self, apply):
        apply(7)

    def trial(self, undo):
        pass

    def on_success(self, callback):
        callback(7)


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def answer_of(call, *arguments):
    answers = []
    call(*arguments, answers.append)
    for _ in range(1000):
        if answers:
            return answers[0]
        time.sleep(0.005)
    raise TimeoutError("the reload was not answered")


@pytest.fixture
def book():
    return SourceBook()


@pytest.mark.parametrize("name, outcome, check, says", list(cases()))
def test_edit(name, outcome, check, says, tmp_path, monkeypatch, book):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before, after = ((DATA / f"{name}.{which}.py").read_text("utf-8") for which in ("before", "after"))
    path = tmp_path / f"{name}.py"
    path.write_text(before, "utf-8")
    module = load(path, f"reload_case_{name}")
    try:
        book.remember(str(path))
        kept = dict(vars(module))
        codes = {key: value.__code__ for key, value in kept.items() if hasattr(value, "__code__")}
        path.write_text(after, "utf-8")
        reloader = Reloader(book, Host(NextCall(), step=lambda: 8))
        answer = answer_of(reloader.reload, str(path), None)
        told = "\n".join(answer.reasons + [f"{c['function']} {c['what']} {c['old']} -> {c['new']}" for c in answer.changes])
        assert answer.outcome == outcome, told
        assert eval(check, vars(module)), (check, told)
        assert says in told
        if outcome == "refused":
            assert {key: value.__code__ for key, value in vars(module).items() if hasattr(value, "__code__")} == codes
            assert book.get(str(path)) == before
        else:
            assert book.get(str(path)) == after
            again = answer_of(reloader.reload, str(path), None)
            assert (again.outcome, again.changes) == ("unchanged", [])
        if outcome == "applied":
            undone = answer_of(reloader.undo)
            assert undone.outcome == "applied"
            assert book.get(str(path)) == before
            for key, code in codes.items():
                assert vars(module)[key].__code__ == code
            assert {key for key in vars(module) if not key.startswith("__")} == {key for key in kept if not key.startswith("__")}
            repeated = answer_of(reloader.reload, str(path), None)
            assert repeated.outcome == "applied" and eval(check, vars(module))
    finally:
        del sys.modules[module.__name__]
