"""A reload as a transaction: when it comes into force, what takes it back, what is answered meanwhile."""
# ruff: noqa: F811 - fixtures are named as what they are imported as
import threading
import time

from reload_kit import AFTER, BEFORE, Answers, Calls, program  # noqa: F401 - the fixture among them

from dvm_core.hotreload import reloader


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
    assert "tried by the next captured call: none came within 0.05 s" in answer.reasons[0]
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


def test_stopped_between_calls_it_does_not_wait_for_one(program, monkeypatch):
    monkeypatch.setattr(reloader, "BOUNDARY_WAIT", 1e9)
    p = program()
    p.stopped = True
    assert p.save(AFTER).wait().outcome == "applied" and p.module.scale(1) == 3





def test_a_running_function_is_named(program):
    p = program("def loop(events):\n    for event in events:\n        event.wait()\n    return 1\n")
    event = threading.Event()
    thread = threading.Thread(target=p.module.loop, args=([event],))
    thread.start()
    try:
        p.call_until(p.save("# moves the others\n" + p.path.read_text()), lambda: None)  # the function has another code object from here on
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


def test_a_save_between_import_and_first_look_is_not_taken_for_what_runs(program):
    p = program()
    p.book.put(str(p.path), AFTER)  # as it was read by then
    answer = p.save(AFTER).wait()
    assert answer.outcome == "refused" and "`scale` does not run what the file said" in answer.reasons[0]
    p.book.put(str(p.path), BEFORE)
    assert p.save(BEFORE).wait().outcome == "unchanged"


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


def test_a_constant_that_only_other_modules_read_besides_top_level_code_is_applied(program):
    config = program("class Config:\n    width = 2\n    area = width * width\n", "config")
    user = program(f"from {config.module.__name__} import Config\n\n\ndef use():\n    return Config.width\n", "user")
    config.book.remember(str(user.path))
    answer = config.call_until(config.save(config.path.read_text().replace("= 2", "= 3")), user.module.use)
    assert answer.outcome == "applied" and "read by top-level code that has run already (line 3)" in answer.reasons[0]
    assert user.module.use() == 3 and config.module.Config.area == 4


def test_closures_made_between_search_and_swap_are_swept(program):
    p = program("def make(k):\n    def add(x):\n        return x + k\n    return add\n\n\nkept = [make(1)]\n")

    class Late(Calls):
        def at_next_call(self, apply, number=0, of=""):
            p.module.kept.append(p.module.make(2))  # after the search, before the swap
            return super().at_next_call(apply)

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


def test_a_constant_that_other_top_level_code_has_read_is_told_with_file_and_line(program):
    config = program("RATE = 0.1\n\n\nclass Config:\n    width = 2\n\n\ndef rate():\n    return RATE * Config.width\n", "config")
    name = config.module.__name__
    users = {
        "by_module": f"import {name}\n\n\ndef use():\n    return {name}.RATE\n\n\nHALF = {name}.RATE / 2\n",
        "by_name": f"import {name} as c\nfrom {name} import RATE as R\n\n\ndef use(rate=R):\n    return rate\n",
        "by_class": f"from {name} import Config as C\n\n\nclass Net:\n    width = C.width\n",
        "in_functions": f"import {name} as c\n\n\ndef use():\n    return c.RATE, c.Config.width\n",
    }
    for user, text in users.items():
        config.book.remember(str(program(text, user).path))
    told = config.call_until(config.save(config.path.read_text().replace("0.1", "0.5")), config.module.rate).reasons
    assert [text.split(" of ")[1].split(";")[0] for text in told] == [
        "by_module.py that has run already (line 8)", "by_name.py that has run already (line 5)"]
    assert told[0].endswith("what that made keeps the value it read")
    told = config.call_until(config.save(config.path.read_text().replace("= 2", "= 3")), config.module.rate).reasons
    assert [text.split(" of ")[1].split(";")[0] for text in told] == ["by_class.py that has run already (line 5)"]


def test_what_is_read_is_what_the_file_settles_on(program):
    p = program()
    settled = []

    def settle(path):
        settled.append(path)
        p.path.write_text(AFTER)  # the writer's last piece

    p.reloader.host.settle = settle
    assert p.call_until(p.save(AFTER.replace("* 3", "* "))).outcome == "applied" and p.module.scale(1) == 3
    assert settled == [str(p.path)]
    answers = Answers()
    p.reloader.reload(str(p.path), BEFORE, answers.append)
    assert p.call_until(answers).outcome == "applied" and settled == [str(p.path)], "a text that was handed over needs no waiting"


def test_a_class_and_a_decorated_function_that_come_back_into_the_text_are_those_that_are_there(program):
    text = """import functools


class Schedule:
    scale = 2

    def rate(self, step):
        return self.scale / (1 + step)


@functools.lru_cache
def decay(step):
    return 0.5 ** step


def use(step):
    return 1
"""
    p = program(text)
    schedule, rate = p.module.Schedule(), p.module.Schedule.rate
    without = text[:text.index("class Schedule")] + text[text.index("def use"):]
    assert p.call_until(p.save(without), lambda: None).outcome == "unchanged"
    assert p.call_until(p.save("# moved\n\n" + text), lambda: None).outcome == "unchanged"
    assert (rate.__code__.co_firstlineno, p.module.decay.__wrapped__.__code__.co_firstlineno) == (9, 13)
    assert p.call_until(p.save(without.replace("return 1", "return 2")), lambda: None).outcome == "applied" and p.module.use(0) == 2
    changed = text.replace("(1 + step)", "(2 + step)").replace("scale = 2", "scale = 4").replace("0.5", "0.25")
    again = p.call_until(p.save(changed), lambda: None)
    assert again.outcome == "applied" and p.module.use(0) == 1
    assert schedule.rate(2) == 1.0 and p.module.decay(1) == 0.25 and p.module.Schedule.rate is rate
    assert p.call_until(p.save(text.replace("class Schedule:", "class Schedule(dict):")), lambda: None).outcome == "refused"


def test_a_trial_that_no_call_comes_for_holds_up_no_other_save(program, monkeypatch):
    monkeypatch.setattr(reloader, "TRIAL_WAIT", 0.05)
    p = program()

    class Elsewhere(Calls):
        """Begins with the swap, and is not what shows the new code."""
        def call(self, function):
            self.step += 1
            queued, self.queue = self.queue, []
            for _, apply in queued:
                apply(self.step)
            return function()

    p.calls = p.reloader.host.boundary = Elsewhere()
    assert p.call_until(p.save(AFTER)).outcome == "applied"
    assert p.call_until(p.save(AFTER.replace("x * 3", "x * 4"))).outcome == "applied" and p.module.scale(1) == 4
    for callback in p.calls.successes:
        callback(p.calls.step)
