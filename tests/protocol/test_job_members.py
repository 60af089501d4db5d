"""Which processes are the ranks of a job: sessions that come anew, one after the other, or see the same save."""
# ruff: noqa: F811 - the fixture is named as what it is imported as
import asyncio

import pytest
from dvm_adapter import job as jobs
from dvm_adapter.errors import RequestError
from job_kit import PATH, Rank, other, pair, played, told, until  # noqa: F401 - the fixture among them


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
