"""Reloads that are taken back by the user: one after another, file by file, and when that is refused."""
# ruff: noqa: F811 - fixtures are named as what they are imported as
import sys

import pytest
from reload_kit import AFTER, Program, program  # noqa: F401 - the fixture among them

from dvm_core.hotreload import Done, Host, Reloader, jobs


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
    assert answer.outcome == "unchanged" and answer.reasons == ["no edit is in force: nothing to undo"]


@pytest.fixture
def two(program, tmp_path):
    first = program()
    other = Program(tmp_path / "other.py", "import sys\n\n\ndef twice(x):\n    return x * 2\n", beside=first)
    yield first, other
    del sys.modules[other.module.__name__]


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
    assert again.outcome == "unchanged" and again.reasons == [f"no edit of {p.path.name} is in force: nothing to undo"]
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


def test_only_so_many_reloads_are_kept_for_undo(program, monkeypatch):
    monkeypatch.setattr(jobs, "_MOST_UNDONE", 3)
    p = program()
    for factor in range(3, 10):
        assert p.call_until(p.save(f"def scale(x):\n    return x * {factor}\n")).outcome == "applied"
    assert [p.call_until(p.undo()).outcome for _ in range(4)] == ["applied"] * 3 + ["unchanged"] and p.module.scale(1) == 6


def test_what_another_reloader_of_the_process_has_brought_in_is_taken_back(program):
    """As a session does with what `dvm reload` brought in before it came, and the next with what came in it."""
    p = program()
    done, host = Done(), Host(p.calls, step=lambda: p.calls.step)
    p.reloader = Reloader(p.book, host, done=done)
    p.call_until(p.save(AFTER))
    p.reloader = Reloader(p.book, host, done=done)
    assert p.call_until(p.undo()).outcome == "applied" and p.module.scale(1) == 2
    p.reloader = Reloader(p.book, host, done=done)
    assert p.undo().wait().outcome == "unchanged"
