"""What a rank of a job is told of an edit that another could not keep, that comes late, or that waits behind another."""
# ruff: noqa: F811 - the fixture is named as what it is imported as
import asyncio
import os

import pytest
from dvm_adapter import edit
from job_kit import PATH, REPORT, other, pair, played, taken_back, takes, told, until  # noqa: F401 - the fixture among them


def test_a_word_that_cannot_be_kept_is_taken_back_by_the_others(other):
    first, second = pair(other)
    second.answers["decide"] = lambda arguments: second.link.tell(
        "settled", ticket=arguments["ticket"], **{**REPORT, "outcome": "refused", "reasons": ["out of memory"], "pending": False})

    async def play(job):
        await job.take(PATH)
        await until(lambda: first.told)

    played(play, first, second)
    assert told(first) == [[("refused", False, ["rank 1: out of memory"])]] and first.asked[-1] == taken_back(first)


def test_who_cannot_take_back_what_another_could_not_keep_is_named(other):
    first, second = pair(other, undoReload={"outcome": "refused", "reasons": ["another edit needs it"]})
    first.answers["decide"] = lambda arguments: first.link.tell(
        "settled", ticket=arguments["ticket"], **{**REPORT, "outcome": "refused", "reasons": ["out of memory"], "pending": False})
    played(takes(PATH, first, second), first, second)
    why = "rank 1: still has the new code, which it could not take back (another edit needs it): undo the edit in the file and save"
    assert told(first, second) == [[("refused", False, [f"rank 0: out of memory; {why}"])]] * 2


@pytest.mark.parametrize("outcome", ["applied", "refused"])
def test_what_comes_of_a_long_step_is_told_when_it_ends_and_mended(other, monkeypatch, outcome):
    monkeypatch.setattr(edit, "SETTLE", 0.05)
    first, second = pair(other, decide=None)

    async def play(job):
        await job.take(PATH)
        ticket = second.asked[-1][1]["ticket"]
        second.link.tell("settled", ticket=ticket, **{**REPORT, "outcome": outcome, "reasons": ["late"], "pending": False})
        await until(lambda: len(second.told) == 2 and len(first.told) == (2 if outcome == "refused" else 1))
        assert list(job._unsettled) == ([ticket] if outcome == "applied" else [])

    played(play, first, second)
    assert told(second)[0][0] == ("applied", True, [])
    if outcome == "applied":
        assert told(first, second) == [[("applied", False, [])], [("applied", True, []), ("applied", False, ["late"])]]
    else:
        assert first.told[1]["reasons"] == second.told[1]["reasons"] == ["rank 1: late"]
        assert first.asked[-1] == taken_back(first)


def test_an_edit_that_fails_in_a_function_called_later_is_taken_back_everywhere(other):
    first, second = pair(other)

    async def play(job):
        await job.take(PATH)
        second.answers["undoReload"] = {"outcome": "unchanged", "reasons": ["nothing to undo"]}  # it has failed there as well
        for rank in (first, second):
            rank.link.tell("settled", ticket=rank.asked[-1][1]["ticket"],
                           **{**REPORT, "outcome": "refused", "reasons": ["taken back"], "pending": False})
        await until(lambda: len(first.told) == len(second.told) == 2)

    played(play, first, second)
    for rank in (first, second):
        assert [body["outcome"] for body in rank.told] == ["applied", "refused"]
        assert "ranks 0-1: taken back" in rank.told[1]["reasons"][0] and "still has" not in rank.told[1]["reasons"][0]


def test_a_rank_that_is_in_its_step_when_another_cannot_keep_its_word_takes_the_edit_back_behind_it(other, monkeypatch):
    monkeypatch.setattr(edit, "SETTLE", 0.05)
    first, second = pair(other, decide=None)
    first.answers["decide"] = lambda arguments: first.link.tell(
        "settled", ticket=arguments["ticket"], **{**REPORT, "outcome": "refused", "reasons": ["out of memory"], "pending": False})

    async def play(job):
        await job.take(PATH)
        ticket = second.asked[-1][1]["ticket"]
        assert "undoReload" not in dict(second.asked)
        second._decide({"ticket": ticket, "keep": True})
        await until(lambda: len(first.told) == 2)

    played(play, first, second)
    assert first.told[0]["reasons"] == ["rank 0: out of memory; rank 1: is still in that step: takes the edit back behind it"]
    assert first.told[1]["reasons"] == ["rank 0: out of memory"] and second.asked[-1] == taken_back(second)


def test_two_files_saved_together_are_both_taken(other, tmp_path):
    first, second = pair(other)
    paths = [str(tmp_path / name) for name in ("model.py", "layers.py")]

    async def play(job):
        for path in paths:
            with open(path, "w") as file:
                file.write("RATE = 1\n")
        waiting = asyncio.ensure_future(job.take(paths[0]))
        await until(lambda: job._edit is not None)
        await asyncio.gather(waiting, job.take(paths[1]))
        await until(lambda: len(first.told) == 2)

    played(play, first, second)
    assert [arguments["path"] for command, arguments in second.asked if command == "prepare"] == paths
    assert told(first) == [[("applied", False, [])] * 2] and first.decisions() == second.decisions() == [True, True]


def test_a_file_that_waits_behind_another_says_so(other, monkeypatch, tmp_path):
    monkeypatch.setattr(edit, "PENDING", 0.02)
    first, second = pair(other)
    first.vote = second.vote = None

    async def play(job):
        waiting = asyncio.ensure_future(job.take(PATH))
        behind = asyncio.ensure_future(job.take(str(tmp_path / "gone.py")))
        await until(lambda: len(first.told) == 2)
        second.link.close()
        await asyncio.gather(waiting, behind)

    played(play, first, second)
    assert {body["reasons"][0] for body in first.told[:2]} == {"waits for all 2 ranks to come to step 11",
                                                               f"waits for the edit of {os.path.basename(PATH)} before it"}


def test_one_that_is_not_ready_in_time_or_does_not_wait_is_told_no(other, monkeypatch):
    monkeypatch.setattr(edit, "PREPARE", 0.05)
    first, second = pair(other)

    async def play(job):
        go_on = asyncio.Event()
        second.answers["prepare"] = lambda arguments: go_on.wait()
        await job.take(PATH)
        await until(second.decisions)
        go_on.set()
        second.answers["prepare"] = {**REPORT, "reasons": ["waits for the call you are stopped in to end"]}
        await job.take(PATH)
        await until(lambda: len(first.told) == 2)

    played(play, first, second)
    assert first.decisions() == [False, False] and second.decisions() == [False]
    assert "within 0 s" in first.told[0]["reasons"][0]
    assert first.told[1]["reasons"] == ["rank 1: waits for the call you are stopped in to end"]


def test_a_file_that_cannot_be_read_is_refused_once_for_all(other, tmp_path):
    first, second = pair(other)
    played(takes(str(tmp_path / "gone.py"), first), first, second)
    assert first.told[0]["outcome"] == "refused" and "gone.py cannot be read: " in first.told[0]["reasons"][0] and not second.asked
