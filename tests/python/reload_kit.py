"""A file, its module, a reloader over it and calls as a front end makes them: what tests of reloads share."""
import contextlib
import sys
import time
import types

import pytest

from dvm_core.hotreload import Host, Reloader, SourceBook

BEFORE = "def scale(x):\n    return x * 2\n"
AFTER = "def scale(x):\n    return x * 3\n"


class Calls:
    """Stands for a front end's captured calls: `call` makes one, as frontends.reloadable does."""

    def __init__(self):
        self.queue, self.trials, self.successes = [], [], []
        self.step = 0

    def calls(self):
        return {}

    def call_number(self, step):
        return step

    def held(self):
        return contextlib.nullcontext()

    def at_next_call(self, apply, number=0, of=""):
        self.queue.append((number, apply))
        return lambda: self.queue.remove((number, apply)) if (number, apply) in self.queue else None

    def agrees_when_recorded(self):
        return True

    def trial(self, undo, path, agree=lambda: None, late=None):
        self.trials.append((undo, agree))

    def on_success(self, callback, path):
        self.successes.append(callback)

    def call(self, function):
        self.step += 1
        due, self.queue = [entry for entry in self.queue if entry[0] <= self.step], [entry for entry in self.queue if entry[0] > self.step]
        for _, apply in due:
            apply(self.step)
        trials, self.trials = self.trials, []
        successes, self.successes = self.successes, []
        try:
            result = function()
            for _, agree in trials:
                agree()
        except BaseException as error:
            if not trials:
                raise
            for undo, _ in reversed(trials):
                undo(error)
            if not isinstance(error, Exception):
                raise
            return function()
        for callback in successes:
            callback(self.step)
        return result


class Answers(list):
    def wait(self, count=1, timeout=5):
        end = time.monotonic() + timeout
        while len(self) < count:
            assert time.monotonic() < end, f"only {len(self)} of {count} answers"
            time.sleep(0.002)
        return self[count - 1]


class Program:
    """A file, its module, and a reloader over it."""

    def __init__(self, path, text, beside=None):
        """beside: another program, whose reloader this file is in the hands of, too."""
        self.path = path
        path.write_text(text)
        self.module = types.ModuleType(f"reload_{path.stem}")
        self.module.__file__ = str(path)
        sys.modules[self.module.__name__] = self.module
        exec(compile(text, str(path), "exec", dont_inherit=True), vars(self.module))
        if beside is not None:
            self.calls, self.reloader, self.book = beside.calls, beside.reloader, beside.book
            self.book.remember(str(path))
            return
        self.calls = Calls()
        self.stopped = self.capturing = False
        self.book, self.news, self.swapped = SourceBook(), Answers(), []
        self.book.remember(str(path))
        host = Host(self.calls, step=lambda: self.calls.step, stopped=lambda: self.stopped, capturing=lambda: self.capturing,
                    swapped=self.swapped.append)
        self.reloader = Reloader(self.book, host, self.news.append)

    def save(self, text):
        self.path.write_text(text)
        answers = Answers()
        self.reloader.reload(str(self.path), None, answers.append)
        return answers

    def undo(self, path=None):
        answers = Answers()
        self.reloader.undo(answers.append, path and str(path))
        return answers

    def call_until(self, answers, function=None):
        """Captured calls in a loop, as training makes them, until the reload is answered."""
        end = time.monotonic() + 5
        while not answers:
            assert time.monotonic() < end
            self.calls.call(function or (lambda: self.module.scale(1)))
            time.sleep(0.001)
        return answers[0]


@pytest.fixture
def program(tmp_path):
    made = []

    def make(text=BEFORE, name="model"):
        made.append(Program(tmp_path / f"{name}.py", text))
        return made[-1]

    yield make
    for one in made:
        sys.modules.pop(one.module.__name__, None)
