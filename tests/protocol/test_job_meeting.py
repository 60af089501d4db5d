"""Where the ranks of a job take an edit together: which step or call, who is waited for, who is named."""
# ruff: noqa: F811 - the fixture is named as what it is imported as
import asyncio

import pytest
from dvm_adapter import edit, meeting
from job_kit import PATH, REPORT, other, pair, played, told, until  # noqa: F401 - the fixture among them


def test_the_step_lies_behind_that_of_every_rank(other):
    first, second = pair(other)
    second.step = 25

    async def play(job):
        bodies = await job.take(PATH)
        await until(lambda: first.told and second.told)
        return bodies

    assert {body["step"] for body in played(play, first, second).values()} == {11}
    assert [arguments["number"] for rank in (first, second) for command, arguments in rank.asked if command == "arm"] == [26, 26]
    assert first.decisions() == second.decisions() == [True] and told(first, second) == [[("applied", False, [])]] * 2


def test_the_step_lies_behind_those_that_ranks_make_until_they_are_told(other):
    first, second = pair(other)
    first.answers["pace"] = {"step": 10, "rate": 1000.0, "calls": {}}

    async def play(job):
        await job.take(PATH)

    played(play, first, second)
    assert [arguments["number"] for rank in (first, second) for command, arguments in rank.asked if command == "arm"] == [31, 31]


def calls(**counts):
    return {"step": 2 * sum(counts.values()), "rate": 0.0, "calls": {f"train:{name}": [count, 0.1] for name, count in counts.items()}}


@pytest.mark.parametrize(("paces", "met"), [
    ([calls(step=7, forward=8), calls(step=7, forward=8)], "call 9 of `forward`"),
    ([calls(step=7, evaluate=30), calls(step=8)], "call 9 of `step`"),
    ([calls(step=7, evaluate=1), calls(step=7, evaluate=1)], "call 8 of `step`"),
    ([calls(step=7), calls(step=90)], "step 181"),  # ranks that do not wait for each other
    ([calls(first=7), calls(second=7)], "step 15"),
    ([{**calls(step=7), "calls": {"a:warm_up": [50, 61.0], "a:step": [7, 1.0]}}] * 2, "call 8 of `step`"),
    ([{**calls(step=7), "calls": {"a:step": [7, 3600.0]}}] * 2, "step 15"),  # steps are a compiled model's
    ([calls(step=7), {**calls(step=7), "calls": {"train:step": [7, -1]}}], "call 8 of `step`"),  # one has just looked for the first time
    ([{**calls(step=50), "rate": 100.0}] * 2, "call 52 of `step`"),  # of two calls a step
])
def test_ranks_meet_at_a_call_of_a_function_in_which_they_keep_together(paces, met):
    assert str(meeting.choose(paces, 1)) == met


def test_a_function_that_turns_out_not_to_be_called_any_more_is_not_waited_for(other, monkeypatch):
    monkeypatch.setattr(edit, "PENDING", 0.02)
    first, second = pair(other)
    for rank in (first, second):
        rank.vote, step = None, iter(range(20, 1000))
        rank.answers["pace"] = lambda arguments, step=step: {**calls(step=7, warm_up=9), "step": next(step)}
        rank.answers["arm"] = lambda arguments, rank=rank: rank._arm(arguments) if not arguments["of"] else {"armed": True}

    async def play(job):
        taking = asyncio.ensure_future(job.take(PATH))
        await until(lambda: [of(first)[-1:], of(second)[-1:]] == [["train:step"]] * 2)
        first.vote = second.vote = True
        return await taking

    def of(rank):
        return [arguments["of"] for command, arguments in rank.asked if command == "arm"]

    assert {body["outcome"] for body in played(play, first, second).values()} == {"applied"}
    assert of(first) == of(second) == ["train:warm_up", "train:step", ""]


@pytest.mark.parametrize("vote", [True, "no"])
def test_a_refused_save_is_tried_again_behind_another_and_told_of_only_if_it_is_taken(other, tmp_path, vote):
    first, second = pair(other)
    early, late = (str(tmp_path / name) for name in ("early.py", "late.py"))
    for path in (early, late):
        open(path, "w").close()

    async def play(job):
        second.vote = "no"
        await job.take(early)
        second.vote = True
        await job.take(late)
        second.vote = vote
        await until(lambda: not job._tasks)
        second.vote = True
        await job.take(late)
        await until(lambda: not job._tasks)
        await until(lambda: len(first.told) == len(second.told) == 4)

    def asked():
        return [arguments["path"] for command, arguments in first.asked if command == "prepare"]

    played(play, first, second)
    tried = [(early, False), (late, True), (early, True), (late, True)] if vote is True else [
        (early, False), (late, True), (early, False), (late, True), (early, True)]  # what it waits for may be the second
    assert list(zip(asked(), first.decisions(), strict=True)) == tried


def test_one_that_refuses_or_votes_against_it_is_named_to_all(other):
    first, second = pair(other)

    async def play(job):
        second.answers["prepare"] = {**REPORT, "outcome": "refused", "reasons": ["needs restart"], "pending": False}
        await job.take(PATH)
        second.answers["prepare"], second.vote = second._prepare, "no"
        await job.take(PATH)
        await until(lambda: len(first.told) == len(second.told) == 2)

    played(play, first, second)
    assert told(first, second) == [[("refused", False, ["rank 1: needs restart"]), ("refused", False, ["rank 1: no"])]] * 2
    assert first.decisions() == [False, False] and second.decisions() == [False]


@pytest.mark.parametrize("when", ["at once", "later"])
def test_a_step_that_one_has_passed_is_chosen_anew_and_further_away(other, when):
    first, second = pair(other)
    asked = []

    def arm(arguments):
        asked.append(arguments)
        second.vote = "later" if len(asked) < 3 and when == "later" else True
        return {"armed": False} if len(asked) < 3 and when == "at once" else second._arm(arguments)

    second.answers["arm"] = arm
    played(lambda job: job.take(PATH), first, second)
    steps = [arguments["number"] for command, arguments in first.asked if command == "arm"]
    assert steps == [11, 14, 26] and first.decisions() == [False, False, True]


def test_a_rank_that_is_killed_meanwhile_leaves_the_others_with_the_old_code(other):
    first, second = pair(other)
    first.vote = second.vote = None

    async def play(job):
        async def kill():
            await until(lambda: "arm" in dict(first.asked) and "arm" in dict(second.asked))
            other.kill()
            other.wait()
            second.link.close()

        await asyncio.gather(job.take(PATH), kill())
        await until(lambda: first.told)
        assert told(first) == [[("refused", False, ["rank 1: its process has ended"])]] and first.decisions() == [False]
        first.vote = True
        first.told.clear()
        await job.take(PATH)  # the others are all there are now
        await until(lambda: first.told)

    played(play, first, second, size=None)
    assert told(first) == [[("applied", False, [])]]


def test_one_that_stays_away_does_not_hold_the_others_for_long(other, monkeypatch):
    monkeypatch.setattr(edit, "VOTES", 0.1)
    first, second = pair(other)
    second.vote = None

    async def play(job):
        second.link.tell("stands", stands=True)
        await job.take(PATH)
        await until(lambda: first.told and second.told)

    played(play, first, second)
    why = "rank 1: did not come to step 11 within 0.1 s of the others; it stands at a stop: save again when it does"
    assert told(first, second) == [[("refused", False, [why])]] * 2 and first.decisions() == [False]


def test_while_nobody_has_come_to_the_step_it_waits_says_so_and_gives_way_to_a_later_save(other, monkeypatch):
    monkeypatch.setattr(edit, "PENDING", 0.02)
    first, second = pair(other)
    first.vote = second.vote = None

    async def play(job):
        waiting = asyncio.ensure_future(job.take(PATH))
        await until(lambda: first.told)
        monkeypatch.setattr(edit, "PENDING", 60)
        first.vote = second.vote = True
        await asyncio.gather(waiting, job.take(PATH))
        await until(lambda: len(first.told) == 3)

    played(play, first, second)
    assert told(first) == [[("applied", True, ["waits for all 2 ranks to come to step 11"]),
                            ("refused", False, ["replaced by a later save"]), ("applied", False, [])]]
