"""What a watcher tells of a folder: files closed by their writer or moved to their name, nothing of what is still written."""
import asyncio
import contextlib
import os
import sys

import pytest
from dvm_wire import Saves, watching

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells when a file is closed")


def told(folder, *steps, until=lambda seen: True):
    """What is told of each step, a function that changes files. `until` says of what was told so far whether the step's news is there."""
    async def run():
        ended, found = asyncio.Event(), []
        async with contextlib.aclosing(watching.happened([str(folder)], ended)) as events:
            waits = asyncio.ensure_future(anext(events))
            await asyncio.sleep(0.05)  # the watch is there when the first wait has begun
            for step in steps:
                step()
                seen = set()
                while True:
                    news = await asyncio.wait_for(waits, 60)
                    seen |= {os.path.basename(path) for path in news}
                    waits = asyncio.ensure_future(anext(events))
                    if until(seen):
                        break
                found.append(seen)
            ended.set()
            with contextlib.suppress(StopAsyncIteration):
                await waits
        return found
    return asyncio.run(run())


@LINUX
def test_a_file_is_told_when_its_writer_closes_it_and_not_before(tmp_path):
    path = tmp_path / "a.py"
    file = path.open("w")

    def written():
        file.write("RATE = 1")
        file.flush()

    assert told(tmp_path, written) == [set()]  # from time to time, without news
    assert told(tmp_path, file.close, until=bool) == [{"a.py"}]


@LINUX
def test_a_file_moved_to_its_name_is_told_by_that_name(tmp_path):
    (tmp_path / "a.py.part").write_text("RATE = 2\n")
    assert told(tmp_path, lambda: os.replace(tmp_path / "a.py.part", tmp_path / "a.py"), until=bool) == [{"a.py"}]


def test_a_folder_that_is_gone_is_watched_all_the_same(tmp_path):
    assert told(tmp_path / "gone", lambda: None) == [set()]


@LINUX
def test_a_closed_file_needs_no_rest_but_an_empty_one_does(tmp_path):
    path = tmp_path / "a.py"
    path.write_text("RATE = 1.0\n")
    saves = Saves(now=lambda: 0.0, wall=lambda: 0.0)
    saves.files = {str(path)}
    assert saves.look() == []
    path.write_text("")
    assert saves.look([str(path)]) == [] and saves.moving
    path.write_text("RATE = 2.0\n")
    assert saves.look() == [] and saves.moving
    assert saves.look([str(path)]) == [str(path)] and not saves.moving
    assert saves.look([str(path)]) == []  # closed again, by a reader with write access, say


def test_without_its_own_package_the_other_one_is_asked(tmp_path, monkeypatch):
    pytest.importorskip("watchfiles")
    monkeypatch.setitem(sys.modules, "asyncinotify", None)
    assert watching.available()
    assert told(tmp_path, lambda: (tmp_path / "a.py").write_text("x")) == [set()]
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    assert not watching.available()


def test_a_file_that_was_closed_before_the_first_look_at_it_is_a_save(tmp_path):
    path = tmp_path / "late.py"
    path.write_text("a = 1\n")
    saves = Saves()
    saves.files = {str(path)}
    assert saves.look([str(path)]) == [str(path)] and saves.look([str(path)]) == []
