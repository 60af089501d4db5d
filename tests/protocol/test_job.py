"""The adapter that speaks for the ranks of a job: what it asks them, what it decides, what each is told when one is slow, late or gone."""
import asyncio
import inspect
import os
import subprocess
import sys

import pytest
from dvm_adapter import edit, link, meeting
from dvm_adapter import job as jobs
from dvm_adapter.agent_server import AgentServer
from dvm_adapter.errors import RequestError
from dvm_adapter.log import Log
from harness import ROOT  # noqa: F401 - puts the adapter on the path

PATH = __file__  # any file that can be read
REPORT = {"outcome": "applied", "path": PATH, "step": 0, "reasons": [], "changes": [], "pending": True}


class Rank:
    """The adapter of a rank, played: by command what it answers, a function of its arguments or a value."""

    def __init__(self, number, pid, **answers):
        self.number, self.pid, self.asked, self.told = number, pid, [], []
        self.step, self.vote = 10, True
        self.answers = {"prepare": self._prepare, "pace": self._pace, "arm": self._arm, "decide": self._decide,
                        "undoReload": {"outcome": "applied"}, **answers}

    async def join(self, server, size=2):
        self.server = server
        self.link = await link.connect(server.address, {"type": "rank", "token": server.token, "pid": self.pid, "rank": self.number,
                                                        "size": size, "job": 1}, Log())
        self.link.serve = self._serve
        self.link.on_event = lambda event: self.told.append(event["body"])
        self.task = asyncio.ensure_future(self.link.run())
        return self

    async def _serve(self, command, arguments):
        self.asked.append((command, arguments))
        answer = self.answers[command]
        found = answer(arguments) if callable(answer) else answer
        return (await found if inspect.isawaitable(found) else found) or {}

    def _prepare(self, arguments):
        return {**REPORT, "ready": {"meaningful": True}}

    def _pace(self, arguments):
        return {"step": self.step, "rate": 0.0, "calls": {}}

    def _arm(self, arguments):
        if self.vote is not None:
            ok = self.vote in (True, "later")
            self.link.tell("vote", ticket=arguments["ticket"], ok=ok, reason="" if ok else self.vote,
                           step=arguments["number"] + (self.vote == "later"))
        return {"armed": True}

    def _decide(self, arguments):
        outcome = "applied" if arguments["keep"] else "refused"
        self.link.tell("settled", ticket=arguments["ticket"], **{**REPORT, "outcome": outcome, "step": 11, "pending": False})

    def decisions(self):
        return [arguments["keep"] for command, arguments in self.asked if command == "decide"]


def taken_back(rank):
    """What a rank is asked last that takes its last edit back."""
    ticket = next(arguments["ticket"] for command, arguments in reversed(rank.asked) if command == "prepare")
    return "undoReload", {"path": PATH, "ticket": ticket}


def played(play, *ranks, size=2):
    """Runs `play(server, job)` with these ranks in the job."""
    async def run():
        server = AgentServer(Log())
        await server.start()
        for rank in ranks:
            await rank.join(server, size)
        while not server.jobs._jobs or len(server.jobs._jobs[1].ranks) < len(ranks):
            await asyncio.sleep(0.001)
        try:
            return await asyncio.wait_for(play(server.jobs._jobs[1]), 20)
        finally:
            for rank in ranks:
                rank.link.close()
            await server.close()

    return asyncio.run(run())


@pytest.fixture
def other():
    """A process to be a rank, and to end."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.communicate()


def pair(other, **answers):
    return Rank(0, os.getpid()), Rank(1, other.pid, **answers)


def told(*ranks):
    return [[(body["outcome"], body["pending"], body["reasons"]) for body in rank.told] for rank in ranks]


async def until(condition):
    while not condition():
        await asyncio.sleep(0.001)


def takes(path, *ranks):
    """What is played where these ranks take the file once, and are told."""
    async def play(job):
        await job.take(path)
        await until(lambda: all(rank.told for rank in ranks))

    return play


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
                                                               "waits for the edit of test_job.py before it"}


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


def test_a_session_that_comes_anew_takes_the_place_of_the_one_before(other):
    first, second = pair(other)

    async def play(job):
        anew = await Rank(1, other.pid).join(first.server)
        await second.task
        assert job.ranks.keys() == {first.pid, other.pid} and not job._others()
        anew.link.close()
        await until(lambda: len(job.ranks) == 1)
        assert [rank.number for rank in job._left] == [1]
        back, junk = await Rank(1, other.pid).join(first.server), await Rank("one", other.pid).join(first.server)
        await junk.task
        await until(lambda: not job._others())
        back.link.close()

    played(play, first, second)


def test_not_without_all_ranks(other, monkeypatch):
    monkeypatch.setattr(jobs, "COMING", 0.05)
    first, second = pair(other)

    async def play(job):
        await job.take(PATH)
        second.link.close()
        await until(lambda: len(job.ranks) == 1)
        await job.take(PATH)
        await until(lambda: len(first.told) == 2)

    played(play, first, second, size=4)
    everybody = "all ranks take an edit, or none does"
    assert told(first) == [[("refused", False, [f"ranks 2, 3 have no session here: {everybody}"]),
                            ("refused", False, [f"rank 1 (process {other.pid}) runs without a session: {everybody}"])]]


def test_ranks_that_come_one_after_the_other_are_waited_for(other):
    first, second = pair(other)

    async def play(job):
        taken = asyncio.ensure_future(job.take(PATH))
        await asyncio.sleep(0)
        assert not first.asked
        await second.join(first.server)
        await taken
        await until(lambda: first.told and second.told)

    played(play, first)
    assert told(first, second) == [[("applied", False, [])]] * 2
    second.link.close()


def test_a_save_that_all_see_is_taken_once(other, tmp_path):
    first, second = pair(other)
    path = tmp_path / "model.py"
    path.write_text("RATE = 1\n")

    async def play(job):
        await asyncio.gather(*(rank.link.ask("saved", path=str(path)) for rank in (first, second)))
        path.write_text("RATE = 10\n")
        await second.link.ask("saved", path=str(path))
        assert (await first.link.ask("reload", path=str(path)))["body"]["outcome"] == "applied"
        with pytest.raises(RequestError, match="unknown command"):
            await first.link.ask("nonsense")

    played(play, first, second)
    assert [arguments["text"] for command, arguments in first.asked if command == "prepare"] == ["RATE = 1\n", "RATE = 10\n", "RATE = 10\n"]


def digests(rank, call=None, **steps):
    """Says what that rank has of w, by step. call: the captured function that the step was a call of, and which."""
    for step, digest in steps.items():
        taken = {"missing": True} if digest is None else {"digest": digest, "snapshot": int(step[1:])}
        rank.link.tell("digest", name="w", step=int(step[1:]), call=call, ordinal=0, backward=False, watch=3, shape=[2, 4], **taken)


def test_a_difference_is_told_once_until_the_ranks_are_equal_again(other):
    first, second = pair(other, compare={"elements": 8, "differ": 1, "firstDiffering": [0, 3],
                                         "largest": {"value": 3e-4, "index": [0, 3], "a": "1.0003", "b": "1"}})
    first.answers["tensor"] = {"data": "AAAA", "dtype": "float32", "shape": [2, 4]}

    async def play(job):
        digests(first, s1="a", s2="b", s3="c", s4="d", s5="e", s7="g")
        digests(second, s1="a", s2="x", s3="y", s4="d", s5="z", s6="f", s7="g")
        await until(lambda: len(first.told) == len(second.told) == 2)

    played(play, first, second)
    assert [body["step"] for body in first.told] == [2, 5] and first.told == second.told
    assert first.told[0]["text"] == ("w differs between rank 0 and rank 1 at step 2: 1 of 8 elements, the first at [0, 3], "
                                     "max |d| 0.0003 at [0, 3] (1 and 1.0003)")
    assert first.told[0]["ranks"] == [0, 1] and (first.told[0]["largest"]["a"], first.told[0]["largest"]["b"]) == ("1", "1.0003")
    assert [arguments["a"] for command, arguments in second.asked] == [{"watch": 3, "snapshot": 2}, {"watch": 3, "snapshot": 5}]


def test_what_is_compared_is_of_the_same_call_of_the_same_function_whatever_the_step(other):
    first, second = pair(other, compare={"elements": 8, "differ": 1, "firstDiffering": [0, 3],
                                         "largest": {"value": 3e-4, "index": [0, 3], "a": "1.0003", "b": "1"}})
    first.answers["tensor"] = {"data": "AAAA", "dtype": "float32", "shape": [2, 4]}

    async def play(job):
        digests(first, ("train:forward", 5), s9="a")
        digests(first, ("train:evaluate", 6), s10="b")
        digests(second, ("train:forward", 5), s5="a")
        digests(second, ("train:forward", 6), s6="c")
        digests(first, ("train:forward", 6), s11="d")
        await until(lambda: first.told)

    played(play, first, second)
    assert [body["step"] for body in first.told] == [11]
    assert first.told[0]["text"].startswith("w differs between rank 0 and rank 1 at step 11 (of rank 1: 6): 1 of 8 elements")


def test_zeros_of_other_signs_are_no_difference_and_values_that_have_gone_are_said(other):
    first, second = pair(other, compare={"elements": 8, "differ": 0})
    first.answers["tensor"] = {"data": "AAAA", "dtype": "float32", "shape": [2, 4]}

    async def play(job):
        digests(first, s1="a", s2="b", s3="c")
        digests(second, s1="x", s2="b")
        await until(lambda: second.asked)
        first.answers["tensor"] = {"reason": "it is not kept any more"}
        digests(second, s3="y")
        await until(lambda: first.told)

    played(play, first, second)
    text = "w differs between rank 0 and rank 1 at step 3: by how much is not known: it is not kept any more"
    assert [body["text"] for body in first.told] == [text]


def test_what_a_rank_has_not_got_or_one_that_has_gone_had_is_not_compared(other):
    first, second = pair(other)

    async def play(job):
        digests(second, s1="x")
        await until(lambda: job._compared._digests)
        anew = await Rank(1, other.pid, compare={"elements": 8, "differ": 2}).join(first.server)
        first.answers["tensor"] = {"data": "AAAA", "dtype": "float32", "shape": [2, 4]}
        await second.task
        digests(first, s1="a", s2="b", s3=None, s4="d")
        digests(anew, s1="a", s2=None, s3="y", s4="z")
        await until(lambda: first.told)
        anew.link.close()

    played(play, first, second)
    assert [body["step"] for body in first.told] == [4]
