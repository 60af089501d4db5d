"""Every edit in tests/data/edits: a text, what is saved over it, and what must hold then, through a reloader as the agent makes it."""
import itertools
import sys
import threading
import time
import types

import pytest
from reload_cases import CASES, Call, Case, load

import dvm_core as dvm
from dvm_core import _core
from dvm_core.frontends import capture, reloadable
from dvm_core.hotreload import Host, Reloader, SourceBook

OPTIMIZED = 0x01  # code of functions has this flag; a module's and a class body's does not
ONE = dvm.tensor([1.0])


@dvm.jit
def unrelated(x):
    return x + 1


class Watch:
    """One reloader for all cases, on a thread that notes every top-level code it runs."""

    def __init__(self):
        self.path, self.ran = "", []
        self.book = SourceBook()
        host = Host(reloadable, _core.programs, step=reloadable.step, capturing=lambda: bool(capture.captures()))
        self.reloader = Reloader(self.book, host)

    def profile(self, frame, event, argument):
        if event == "call" and frame.f_code.co_filename == self.path and not frame.f_code.co_flags & OPTIMIZED:
            self.ran.append(frame.f_code.co_qualname if hasattr(frame.f_code, "co_qualname") else frame.f_code.co_name)

    def answer(self, ask, call):
        """What a request is answered while the program goes on making captured calls."""
        answers, end = [], time.monotonic() + 20
        before = sys.getprofile()
        sys.setprofile(self.profile)
        try:
            ask(answers.append)
            while not answers:
                assert time.monotonic() < end, "the reload was not answered"
                call()
                time.sleep(0.0005)
        finally:
            sys.setprofile(before)
        assert not self.ran, "top-level code has run again"
        return answers[0]


@pytest.fixture(scope="module")
def watch():
    made = Watch()
    threading.setprofile(made.profile)  # for the reloader's thread, which its first request starts
    yield made
    threading.setprofile(None)


class Running:
    """A case's file, loaded, and what the program keeps of it."""

    def __init__(self, case, watch, path):
        self.case, self.watch, self.path = case, watch, path
        path.write_bytes(case.data("before"))
        self.module = load(path, f"edit_{path.stem}")
        watch.path = str(path)
        watch.book.remember(str(path))
        self.text = watch.book.get(str(path))
        self.ran = list(self.module.top_level)
        self.first = {name: value for name, value in vars(self.module).items() if not name.startswith("__")}
        self.codes = self.codes_now()
        self.kept = {}

    def codes_now(self):
        return {name: value.__code__ for name, value in vars(self.module).items() if isinstance(value, types.FunctionType)}

    def keep(self):
        self.kept = {}
        for line in self.case.said.get("keep", []):
            name, text = line.split(" = ", 1)
            self.kept[name] = eval(text, self.names())

    def names(self):
        return {"Call": Call, **vars(self.module), **self.kept}

    def holds(self, text):
        return bool(eval(text, self.names()))

    def holds_not(self, text):
        try:
            return not self.holds(text)
        except Exception:
            return True

    def call(self):
        text = self.case["call"]
        eval(text, self.names()) if text else unrelated(ONE)

    def save(self, part):
        self.path.write_bytes(self.case.data(part))
        return self.watch.answer(lambda reply: self.watch.reloader.reload(str(self.path), None, reply), self.call)

    def undo(self):
        return self.watch.answer(lambda reply: self.watch.reloader.undo(reply, str(self.path)), self.call)

    def same_objects(self):
        """Whoever holds a function, class or object made by the file holds what the file's name stands for."""
        for name, value in self.first.items():
            if getattr(value, "__module__", None) == self.module.__name__:
                assert vars(self.module)[name] is value, f"{name} is another object"
        assert self.module.top_level == self.ran


@pytest.fixture
def run(request, watch, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)  # Python's own: libraries of other tests raise it
    running = Running(Case(request.param), watch, tmp_path / request.param.name)
    yield running
    sys.setrecursionlimit(limit)
    del sys.modules[running.module.__name__]


def told(answer):
    return "\n".join(answer.reasons + [f"{c['function']} {c['what']} {c['old']} -> {c['new']}" for c in answer.changes])


@pytest.mark.parametrize("run", CASES, ids=[path.stem for path in CASES], indirect=True)
def test_edit(run):
    case = run.case
    was = case["undo"] or (case["check"] if case["outcome"] == "refused" else "")
    run.keep()
    assert run.holds(was) if was else case["outcome"] != "applied" or run.holds_not(case["check"])
    run.keep()
    answer = run.save("after")
    assert answer.outcome == case["outcome"], told(answer)
    run.same_objects()
    assert run.holds(case["check"]), (case["check"], told(answer))
    for reason in case.said.get("reason", []):
        assert reason in told(answer)
    {"applied": applied, "unchanged": unchanged, "refused": refused}[answer.outcome](run, was)


def applied(run, was):
    in_force = run.watch.book.get(str(run.path))
    again = run.save("after")
    assert (again.outcome, again.changes) == ("unchanged", [])
    assert run.undo().outcome == "applied"
    run.same_objects()
    assert run.holds(was) if was else run.holds_not(run.case["check"])
    assert run.watch.book.get(str(run.path)) == run.text and run.codes_now() == run.codes
    assert {name for name in vars(run.module) if not name.startswith("__")} == set(run.first)
    run.keep()
    assert run.save("after").outcome == "applied" and run.holds(run.case["check"])
    assert run.watch.book.get(str(run.path)) == in_force


def unchanged(run, was):
    again = run.save("after")
    assert (again.outcome, again.reasons, again.changes) == ("unchanged", [], [])
    assert run.undo().outcome == "unchanged"  # there is nothing to take back
    assert run.holds(was or run.case["check"])


def refused(run, was):
    assert run.codes_now() == run.codes and run.watch.book.get(str(run.path)) == run.text
    assert {name for name in vars(run.module) if not name.startswith("__")} == set(run.first)
    assert run.undo().outcome == "unchanged"
    if "later" in run.case.parts:
        later = run.save("later")
        assert later.outcome == "applied", told(later)
        assert run.holds(run.case["later"])
        run.same_objects()


def test_there_are_cases_of_every_outcome():
    outcomes = [Case(path)["outcome"] for path in CASES]
    assert len(outcomes) >= 120 and {key for key, _ in itertools.groupby(sorted(outcomes))} == {"applied", "refused", "unchanged"}
