"""A reload as a transaction: when it comes into force, what takes it back, what is answered meanwhile."""
import sys
import threading
import time
import types

import pytest

from dvm_core.hotreload import Host, Reloader, SourceBook, reloader

BEFORE = "def scale(x):\n    return x * 2\n"
AFTER = "def scale(x):\n    return x * 3\n"


class Calls:
    """Stands for a front end's captured calls: `call` makes one, as frontends.reloadable does."""

    def __init__(self):
        self.queue, self.trials, self.successes = [], [], []
        self.step = 0

    def at_next_call(self, apply):
        self.queue.append(apply)

    def trial(self, undo):
        self.trials.append(undo)

    def on_success(self, callback):
        self.successes.append(callback)

    def call(self, function):
        self.step += 1
        due, self.queue = self.queue, []
        for apply in due:
            apply(self.step)
        trials, self.trials = self.trials, []
        successes, self.successes = self.successes, []
        try:
            result = function()
        except Exception as error:
            if not trials:
                raise
            for undo in reversed(trials):
                undo(error)
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


def test_applied_at_a_call_boundary_with_its_step(program):
    p = program()
    answers = p.save(AFTER)
    answer = p.call_until(answers)
    assert answer.outcome == "applied" and 1 <= answer.step <= p.calls.step
    assert p.module.scale(1) == 3
    assert answer.changes == [{"function": "scale", "what": "constant", "old": "2", "new": "3", "line": 2}]
    assert 0 < answer.held_ms < answer.ms
    assert p.swapped == [str(p.path)]


def test_no_call_sees_a_mixture(program):
    text = "".join(f"def f{i}():\n    return {{n}}\n\n\n" for i in range(50))
    p = program(text.replace("{n}", "1"))
    functions = [getattr(p.module, f"f{i}") for i in range(50)]
    seen = set()
    answers = p.save(text.replace("{n}", "2"))
    p.call_until(answers, lambda: seen.add(tuple(f() for f in functions)))
    p.calls.call(lambda: seen.add(tuple(f() for f in functions)))
    assert seen == {(1,) * 50, (2,) * 50}


def test_an_error_in_the_trial_takes_everything_back_and_loses_no_step(program):
    p = program("RATE = 1\n\n\ndef scale(x):\n    return x * RATE\n")
    answers = p.save("RATE = 2\n\n\ndef scale(x):\n    return x * RATE + missing\n")
    results = []
    answer = p.call_until(answers, lambda: results.append(p.module.scale(1)))
    assert answer.outcome == "refused"
    assert answer.reasons == ["model.py:5: NameError: name 'missing' is not defined: taken back; "
                              f"step {answer.step} was made with the old code"]
    assert p.module.RATE == 1 and set(results) == {1} and len(results) == p.calls.step
    assert p.save(p.path.read_text().replace(" + missing", "")) is not None


def test_after_a_refusal_the_next_save_is_compared_with_what_runs(program):
    p = program()
    p.call_until(p.save("def scale(x):\n    return x * missing\n"))
    answer = p.call_until(p.save("def scale(x):\n    return x * 5\n"))
    assert answer.outcome == "applied" and answer.changes[0]["old"] == "2"


def test_without_captured_calls_it_is_applied_after_a_while(program, monkeypatch):
    monkeypatch.setattr(reloader, "BOUNDARY_WAIT", 0.05)
    p = program()
    answer = p.save(AFTER).wait()
    assert answer.outcome == "applied" and answer.step == 1
    assert "no captured call came within 0.05 s" in answer.reasons[0]
    assert p.module.scale(1) == 3
    p.calls.call(lambda: p.module.scale(1))
    assert p.news.wait().outcome == "applied"


def test_a_late_failure_is_news_and_takes_it_back(program, monkeypatch):
    monkeypatch.setattr(reloader, "BOUNDARY_WAIT", 0.05)
    p = program()
    assert p.save("def scale(x):\n    return x * missing\n").wait().outcome == "applied"
    assert p.calls.call(lambda: p.module.scale(1)) == 2
    news = p.news.wait()
    assert news.outcome == "refused" and "NameError" in news.reasons[0]
    assert p.book.get(str(p.path)) == BEFORE
    assert p.undo().wait().outcome == "unchanged"


def test_a_running_call_is_waited_for(program, monkeypatch):
    monkeypatch.setattr(reloader, "BOUNDARY_WAIT", 0.02)
    p = program()
    p.capturing = True
    answers = p.save(AFTER)
    time.sleep(0.2)
    assert not answers and p.module.scale(1) == 2
    p.capturing = False
    p.calls.call(lambda: p.module.scale(1))
    assert answers.wait().outcome == "applied"


def test_stopped_inside_a_call_the_answer_comes_at_once_and_the_result_as_news(program):
    p = program()
    p.capturing = p.stopped = True
    answer = p.save(AFTER).wait()
    assert answer.outcome == "applied" and answer.pending and answer.step == 1
    assert "that call goes on with the old code" in answer.reasons[0]
    assert p.module.scale(1) == 2
    second = p.save(AFTER.replace("3", "4")).wait()
    assert second.pending
    p.capturing = p.stopped = False
    p.calls.call(lambda: p.module.scale(1))
    news = p.news.wait()
    assert news.outcome == "applied" and not news.pending and p.module.scale(1) in (3, 4)
    p.call_until(p.news[1:] or Answers()) if len(p.news) > 1 else None
    end = time.monotonic() + 5
    while p.module.scale(1) != 4 and time.monotonic() < end:
        p.calls.call(lambda: p.module.scale(1))
        time.sleep(0.01)
    assert p.module.scale(1) == 4


def test_stopped_between_calls_it_is_applied_at_once(program):
    p = program()
    p.stopped = True
    began = time.monotonic()
    assert p.save(AFTER).wait().outcome == "applied"
    assert time.monotonic() - began < 0.8 and p.module.scale(1) == 3


def test_undo_puts_back_and_the_same_save_brings_it_again(program):
    p = program("RATE = 0.1\n\n\ndef rate():\n    return RATE\n")
    after = "RATE = 0.2\nEXTRA = 1\n\n\ndef rate():\n    return RATE + EXTRA\n"
    p.call_until(p.save(after), p.module.rate)
    assert p.module.rate() == 1.2
    answer = p.call_until(p.undo(), p.module.rate)
    assert answer.outcome == "applied" and p.module.rate() == 0.1 and not hasattr(p.module, "EXTRA")
    assert {"function": "RATE", "what": "constant", "old": "0.2", "new": "0.1", "line": 1} in answer.changes
    again = p.call_until(p.save(after), p.module.rate)
    assert again.outcome == "applied" and p.module.rate() == 1.2


def test_undo_takes_later_edits_of_lines_with_it(program):
    p = program()
    p.call_until(p.save(AFTER))
    assert p.call_until(p.save("# moved\n\n" + AFTER)).outcome == "unchanged"
    assert p.module.scale.__code__.co_firstlineno == 3
    p.call_until(p.undo())
    assert p.module.scale(1) == 2 and p.module.scale.__code__.co_firstlineno == 1
    assert p.call_until(p.save("def scale(x):\n    return x * 7\n")).outcome == "applied"
    assert p.module.scale(1) == 7


def test_undo_goes_back_step_by_step(program):
    p = program()
    for n in "345":
        p.call_until(p.save(AFTER.replace("3", n)))
    for n in (4, 3, 2):
        p.call_until(p.undo())
        assert p.module.scale(1) == n
    answer = p.undo().wait()
    assert answer.outcome == "unchanged" and answer.reasons == ["no reload is in force: nothing to undo"]


@pytest.fixture
def two(program, tmp_path):
    first = program()
    other = Program(tmp_path / "other.py", "import sys\n\n\ndef twice(x):\n    return x * 2\n", beside=first)
    yield first, other
    del sys.modules[other.module.__name__]


BODY = """def scale(x, by=2):
    loss = x + 1
    for n in range(2):
        loss = loss * n
    return loss * by
"""


@pytest.mark.parametrize("old, new, changes", [
    ("    return loss", "    print('hey')\n    return loss", [("inserted", "", "print('hey')", 5)]),
    ("    loss = x + 1\n", "    loss = x + 1\n    x = 2\n", [("inserted", "", "x = 2", 3)]),
    ("    return loss * by\n", "", [("deleted", "return loss * by", "", 4)]),
    ("    for n in range(2):\n        loss = loss * n\n", "", [("deleted", "for n in range(2):", "", 3)]),
    ("        loss = loss * n\n", "        loss = loss * n\n        print(n)\n", [("inserted", "", "print(n)", 5)]),
    ("loss * n", "loss - n", [("body", "loss = loss * n", "loss = loss - n", 4)]),
    ("return loss * by", "print(x)\n    return loss / by",
     [("inserted", "", "print(x)", 5), ("body", "return loss * by", "return loss / by", 6)]),
    ("    return loss", "    def f():\n        return 1\n    return loss", [("inserted", "", "definition of f", 5)])])
def test_statements_are_told_as_inserted_deleted_or_replaced(program, old, new, changes):
    p = program(BODY)
    answer = p.call_until(p.save(BODY.replace(old, new)))
    told = [{"function": "scale", "what": what, "old": a, "new": b, "line": line} for what, a, b, line in changes]
    assert answer.outcome == "applied" and answer.changes == told
    back = p.call_until(p.undo(p.path))
    assert [change["what"] for change in back.changes] == [
        {"inserted": "deleted", "deleted": "inserted"}.get(what, what) for what, *_ in changes]


def test_undo_of_one_file_leaves_the_others(two):
    p, other = two
    p.call_until(p.save(AFTER))
    p.call_until(other.save(other.path.read_text().replace("* 2", "* 5")))
    answer = p.call_until(p.undo(p.path))
    assert (answer.outcome, answer.path) == ("applied", str(p.path))
    assert (p.module.scale(1), other.module.twice(1)) == (2, 5)
    again = p.call_until(p.undo(p.path))
    assert again.outcome == "unchanged" and again.reasons == [f"no reload of {p.path.name} is in force: nothing to undo"]
    assert p.call_until(p.undo()).path == str(other.path) and other.module.twice(1) == 2


def test_undo_is_refused_while_a_later_reload_of_another_file_uses_what_it_brought(two):
    p, other = two
    p.call_until(p.save(AFTER + "\n\ndef helper(x):\n    return x + 10\n"))
    before = other.path.read_text()
    called = f"sys.modules[{p.module.__name__!r}].helper(x)"
    p.call_until(other.save(before.replace("x * 2", called)))
    assert other.module.twice(1) == 11
    answer = p.call_until(p.undo(p.path))
    assert answer.outcome == "refused"
    assert answer.reasons == ["the later reload of other.py uses `helper`, which this one brought in: undo that one first"]
    assert other.module.twice(1) == 11 and p.module.scale(1) == 3
    assert p.call_until(p.undo(other.path)).outcome == "applied"
    assert p.call_until(p.undo(p.path)).outcome == "applied"
    assert p.module.scale(1) == 2 and not hasattr(p.module, "helper")


def test_undo_is_refused_while_a_later_reload_has_changed_the_same_again(two):
    p, other = two
    p.call_until(p.save(AFTER))
    p.call_until(other.save(other.path.read_text().replace("* 2", "* 5")))
    first, later = p.reloader._done
    later.plan.patch.assignments.append(first.plan.patch.assignments[0])  # two reloads that wrote one place
    assert p.call_until(p.undo(p.path)).reasons == ["the later reload of other.py changed the same things again: undo that one first"]
    assert p.module.scale(1) == 3


def test_a_running_function_is_named(program):
    p = program("def loop(events):\n    for event in events:\n        event.wait()\n    return 1\n")
    event = threading.Event()
    thread = threading.Thread(target=p.module.loop, args=([event],))
    thread.start()
    try:
        answer = p.call_until(p.save(p.path.read_text().replace("return 1", "return 2")), lambda: None)
        assert answer.outcome == "applied"
        assert answer.reasons == ["`loop` is running: that call goes on with the code it began with, the new code runs from its next call"]
    finally:
        event.set()
        thread.join()


def test_a_file_of_no_module_changes_nothing(program, tmp_path):
    p = program()
    other = tmp_path / "other.py"
    other.write_text("x = 1\n")
    answers = Answers()
    p.reloader.reload(str(other), None, answers.append)
    assert answers.wait().outcome == "unchanged" and "no module" in answers[0].reasons[0]


def test_text_that_never_was_the_running_code_is_refused(program):
    p = program()
    p.book.put(str(p.path), "def scale(x):\n    return x * 9\n")
    answer = p.save(AFTER).wait()
    assert answer.outcome == "refused" and "`scale` does not run what the file said" in answer.reasons[0]


def test_an_unreadable_file_is_refused(program):
    p = program()
    p.path.write_bytes(b"# coding: no-such-coding\nx = 1\n")
    answers = Answers()
    p.reloader.reload(str(p.path), None, answers.append)
    assert answers.wait().outcome == "refused"
    p.path.unlink()
    p.reloader.reload(str(p.path), None, answers.append)
    assert answers.wait(2).outcome == "refused" and "cannot be read" in answers[1].reasons[0]


def test_text_from_the_editor_with_byte_order_mark_and_crlf(program):
    p = program()
    answers = Answers()
    p.reloader.reload(str(p.path), "\ufeff" + AFTER.replace("\n", "\r\n"), answers.append)
    assert p.call_until(answers).outcome == "applied" and p.module.scale(1) == 3


def test_through_a_symbolic_link(program, tmp_path):
    p = program()
    link = tmp_path / "link"
    link.mkdir()
    (link / "model.py").symlink_to(p.path)
    p.path.write_text(AFTER)
    answers = Answers()
    p.reloader.reload(str(link / "model.py"), None, answers.append)
    assert p.call_until(answers).outcome == "applied" and p.module.scale(1) == 3


def test_constants_imported_by_name_follow(program):
    config = program("RATE = 0.1\n\n\ndef rate():\n    return RATE\n", "config")
    user = program(f"from {config.module.__name__} import RATE as R\n\n\ndef use():\n    return R\n", "user")
    config.book.remember(str(user.path))
    config.call_until(config.save(config.path.read_text().replace("0.1", "0.5")), config.module.rate)
    assert config.module.rate() == 0.5 and user.module.use() == 0.5


def test_closures_made_between_search_and_swap_are_swept(program):
    p = program("def make(k):\n    def add(x):\n        return x + k\n    return add\n\n\nkept = [make(1)]\n")

    class Late(Calls):
        def at_next_call(self, apply):
            p.module.kept.append(p.module.make(2))  # after the search, before the swap
            super().at_next_call(apply)

    p.calls = p.reloader.host.boundary = Late()
    p.call_until(p.save(p.path.read_text().replace("x + k", "x - k")), lambda: None)
    assert [f(0) for f in p.module.kept] == [-1, -2]


def test_a_fault_of_ours_is_an_answer(program, monkeypatch):
    p = program()
    monkeypatch.setattr(reloader, "classify", lambda *a, **k: 1 / 0)
    answer = p.save(AFTER).wait()
    assert answer.outcome == "refused" and "the reload itself failed" in answer.reasons[0]
    monkeypatch.undo()
    assert p.call_until(p.save(AFTER)).outcome == "applied"
