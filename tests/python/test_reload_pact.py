"""A rank's side of an edit that all ranks take before the same step or none: what it tells, and what becomes of its code and its steps."""
# ruff: noqa: F811 - fixtures are named as what they are imported as
import threading

import pytest
from reload_kit import AFTER, Answers, program  # noqa: F401 - the fixture among them

from dvm_core import hotreload
from dvm_core.hotreload import pact as pacts


class Rank:
    """A program whose reloads are made with others, of whom the test speaks."""

    def __init__(self, program, text=None, undo=False, ticket=""):
        self.program, self.ready, self.votes, self.armed = program, Answers(), Answers(), Answers()
        self.answers = Answers()
        self.pact = hotreload.Pact(lambda meaningful, report: self.ready.append((meaningful, report)),
                                   lambda ok, reason, step: self.votes.append((ok, reason, step)), ticket)
        if undo:
            program.reloader.undo(self.answers.append, pact=self.pact)
        else:
            program.reloader.reload(str(program.path), text, self.answers.append, pact=self.pact)

    def arm(self, step):
        self.ready.wait()
        self.pact.arm(step, self.armed.append)
        return self.armed.wait()

    def train(self, steps):
        """Calls on a thread of their own: results by step."""
        results = []

        def run():
            for _ in range(steps):
                results.append(self.program.calls.call(lambda: self.program.module.scale(1)))

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return results, thread


def test_the_new_code_counts_from_the_step_named_once_all_agree(program):
    rank = Rank(program(), AFTER)
    assert rank.arm(4)
    results, thread = rank.train(6)
    assert rank.votes.wait() == (True, "", 4) and not rank.answers
    assert results == [2, 2, 2] and rank.program.calls.step == 4  # it waits in the fourth
    rank.pact.decide(True)
    thread.join(5)
    assert results == [2, 2, 2, 3, 3, 3]
    answer = rank.answers.wait()
    assert (answer.outcome, answer.step) == ("applied", 4) and answer.changes
    again = Rank(rank.program, undo=True)
    assert again.arm(8)
    results, thread = again.train(3)
    again.votes.wait()
    again.pact.decide(True)
    thread.join(5)
    assert results == [3, 2, 2] and again.answers.wait().step == 8


def test_one_edit_is_taken_back_by_its_ticket_and_no_other(program):
    p = program()
    for ticket, text in (("a", AFTER), ("b", AFTER.replace("3", "4"))):
        rank = Rank(p, text, ticket=ticket)
        rank.arm(p.calls.step + 2)
        results, thread = rank.train(3)
        rank.votes.wait()
        rank.pact.decide(True)
        thread.join(5)
        assert rank.answers.wait().outcome == "applied"
    for expected in ("applied", "unchanged"):  # the second time it is not there any more
        answers = Answers()
        p.reloader.undo(answers.append, str(p.path), ticket="b")
        assert p.call_until(answers, lambda: p.module.scale(1)).outcome == expected and p.module.scale(1) == 3


def test_where_another_rank_cannot_the_step_is_made_with_the_old_code(program):
    rank = Rank(program(), AFTER)
    rank.arm(2)
    results, thread = rank.train(3)
    rank.votes.wait()
    rank.pact.decide(False, "rank 1: no")
    thread.join(5)
    assert results == [2, 2, 2] and rank.program.calls.step == 3
    answer = rank.answers.wait()
    assert answer.outcome == "refused" and answer.reasons == ["rank 1: no: taken back; step 2 was made with the old code"]
    assert Rank(rank.program, undo=True).answers.wait().outcome == "unchanged"


def test_a_rank_whose_trial_fails_votes_against_it_and_does_not_wait(program):
    rank = Rank(program(), "def scale(x):\n    return x * missing\n")
    rank.arm(1)
    results, thread = rank.train(2)
    thread.join(5)
    assert results == [2, 2] and rank.votes == [(False, "model.py:2: NameError: name 'missing' is not defined", 1)]
    assert rank.answers.wait().outcome == "refused"


def test_a_step_that_has_passed_is_told_and_one_that_no_call_begins_with_is_the_next(program):
    made = program()
    made.calls.step = 9
    rank = Rank(made, AFTER)
    assert rank.arm(9) is False
    rank.pact.decide(False)
    assert rank.answers.wait().reasons == ["the call that was chosen had begun"] and made.module.scale(1) == 2
    late = Rank(made, AFTER)
    assert late.arm(11)
    made.calls.step = 11  # passed between the look and the call
    results, thread = late.train(2)
    assert late.votes.wait() == (True, "", 12)
    late.pact.decide(True)
    thread.join(5)
    assert results == [3, 3] and late.answers.wait().step == 12


def test_a_call_of_a_function_is_counted_and_not_the_steps(program, monkeypatch):
    made = program()
    monkeypatch.setattr(type(made.calls), "calls", lambda calls: {"train:step": calls.step // 10})
    monkeypatch.setattr(type(made.calls), "call_number", lambda calls, step: step + 100)
    made.calls.step = 40
    rank = Rank(made, AFTER)
    rank.ready.wait()
    rank.pact.arm(4, rank.armed.append, "train:step")
    assert rank.armed.wait() is False
    rank.pact.decide(False)
    late = Rank(made, AFTER)
    late.ready.wait()
    late.pact.arm(5, late.armed.append, "train:step")
    assert late.armed.wait() is True and not made.calls.queue[1:]
    _, thread = late.train(1)
    assert late.votes.wait() == (True, "", 141)
    late.pact.decide(True)
    thread.join(5)
    assert late.answers.wait().step == 41


@pytest.mark.parametrize("when", ["prepared", "armed"])
def test_an_edit_that_is_off_before_its_step_leaves_nothing(program, when):
    rank = Rank(program(), AFTER)
    rank.ready.wait()
    if when == "armed":
        rank.arm(1)
    rank.pact.decide(False, "rank 1 has ended")
    assert rank.answers.wait().reasons == ["rank 1 has ended"]
    results, thread = rank.train(2)
    thread.join(5)
    assert results == [2, 2] and not rank.votes
    assert rank.program.call_until(rank.program.save(AFTER)).outcome == "applied"  # alone, and compared with what runs


def test_nobody_waits_for_a_word_that_does_not_come(program, monkeypatch):
    monkeypatch.setattr(pacts, "PATIENCE", 0.05)
    monkeypatch.setattr(pacts, "ARMED", 0.05)
    made = program()
    assert Rank(made, AFTER).answers.wait().reasons == [pacts.SILENT]  # no step is named
    monkeypatch.setattr(pacts, "ARMED", 30)
    rank = Rank(made, AFTER)
    rank.arm(1)
    results, thread = rank.train(1)
    thread.join(5)
    assert results == [2] and rank.answers.wait().reasons[0].startswith(pacts.SILENT)


def test_what_exchanges_no_code_waits_for_the_word_only(program):
    rank = Rank(program(), "# a comment\n" + AFTER.replace("3", "2"))
    assert rank.ready.wait()[0] is False
    rank.pact.decide(True)
    assert rank.program.call_until(rank.answers).outcome == "unchanged"
    assert rank.program.book.get(str(rank.program.path)).startswith("# a comment")


def test_what_was_decided_before_a_rank_is_ready_is_over(program):
    made = program()
    reading, read = threading.Event(), threading.Event()
    made.reloader.host.settle = lambda path: (reading.set(), read.wait(5))
    rank = Rank(made)
    assert reading.wait(5)
    rank.pact.decide(False, "rank 0 did not answer in time")
    made.path.write_text(AFTER)
    read.set()
    assert rank.answers.wait().reasons == ["rank 0 did not answer in time"] and not rank.ready and made.module.scale(1) == 2


def test_ctrl_c_in_the_trial_takes_the_edit_back_and_makes_the_call_no_second_time(program):
    rank = Rank(program(), AFTER)
    rank.arm(1)
    calls = []

    def interrupted():
        calls.append(rank.program.module.scale(1))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rank.program.calls.call(interrupted)
    assert calls == [3] and rank.votes.wait()[0] is False and rank.program.module.scale(1) == 2
    assert rank.answers.wait().reasons == ["KeyboardInterrupt: taken back"]


def test_a_save_of_other_ranks_is_not_answered_early_where_the_user_stands(program):
    made = program()
    made.stopped = made.capturing = True
    first = made.save(AFTER)
    first.wait()  # it waits for the call the user is stopped in
    rank = Rank(made, AFTER.replace("3", "4"))
    other = made.save(AFTER.replace("3", "5"))
    assert other.wait().pending and not rank.answers
    made.stopped = made.capturing = False
    rank.pact.decide(False, "no")
    made.calls.call(lambda: made.module.scale(1))
    assert rank.answers.wait().outcome == "refused"
