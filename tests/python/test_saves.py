"""Saves found by looking at files: settled ones alone, each once, whatever way an editor writes."""
import os

import dvm_wire
from dvm_wire.saves import SETTLED, Saves, folders


class Clock:
    def __init__(self):
        self.time, self.pauses, self.while_paused = 0.0, 0, []

    def __call__(self):
        return self.time

    def pause(self, seconds):
        self.pauses += 1
        self.time += seconds
        if self.while_paused:
            self.while_paused.pop(0)()


def watched(path, text="RATE = 1.0\n"):
    path.write_text(text)
    clock = Clock()
    saves = Saves(clock, wall=lambda: 0.0)  # before any file's time: none has an age
    saves.files = {str(path)}
    assert saves.look() == [] and not saves.moving
    return saves, clock


def test_a_file_that_is_still_written_is_no_save_yet(tmp_path):
    path = tmp_path / "a.py"
    saves, clock = watched(path)
    for text in ("", "RATE =", "RATE = 2"):
        path.write_text(text)
        assert saves.look() == [] and saves.moving
        clock.time += SETTLED / 2
        assert saves.look() == []
        clock.time += SETTLED / 4
    path.write_text("RATE = 2.5\n")
    assert saves.look() == []
    clock.time += SETTLED
    assert saves.look() == [str(path)] and not saves.moving
    clock.time += SETTLED
    assert saves.look() == []


def test_a_file_that_was_written_long_enough_before_the_look_is_saved_at_once(tmp_path):
    path = tmp_path / "a.py"
    path.write_text("RATE = 1.0\n")
    saves = Saves(Clock(), wall=lambda: path.stat().st_mtime + SETTLED * 1.5)
    saves.files = {str(path)}
    saves.look()
    path.write_text("RATE = 2.0  # longer\n")
    assert saves.look() == [str(path)] and not saves.moving


def test_a_file_that_is_replaced_is_saved_though_it_was_gone_meanwhile(tmp_path):
    path = tmp_path / "a.py"
    saves, clock = watched(path)
    os.rename(path, tmp_path / "a.py~")
    assert saves.look() == []
    clock.time += SETTLED
    assert saves.look() == [], "gone is not saved"
    path.write_text("RATE = 1.0\n")
    assert saves.look() == [] and saves.moving
    clock.time += SETTLED
    assert saves.look() == [str(path)]


def test_a_file_that_comes_back_as_it_was_is_no_save(tmp_path):
    path = tmp_path / "a.py"
    saves, clock = watched(path)
    os.rename(path, tmp_path / "b.py")
    saves.look()
    os.rename(tmp_path / "b.py", path)
    clock.time += SETTLED
    assert saves.look() == []
    clock.time += SETTLED
    assert saves.look() == [] and not saves.moving


def test_a_save_that_leaves_size_and_time_as_they_were_is_seen_when_its_writer_closes_it(tmp_path):
    path = tmp_path / "a.py"
    saves, clock = watched(path)
    before = path.stat()
    while path.stat().st_ctime_ns == before.st_ctime_ns:  # the file system's clock ticks every few milliseconds
        path.write_text("RATE = 2.0\n")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert saves.look([str(path)]) == [str(path)]
    path.chmod(0o600)
    clock.time += SETTLED
    assert saves.look() == [] and not saves.moving, "another mode is no other text"


def test_a_watched_file_that_is_gone_does_not_keep_the_watcher_looking(tmp_path):
    path = tmp_path / "a.py"
    saves, clock = watched(path)
    path.unlink()
    assert saves.look() == []
    clock.time += SETTLED
    assert saves.look() == []
    assert not saves.moving, "the folder's next event is soon enough"


def test_settling_waits_for_the_writer_and_for_nothing_else(tmp_path):
    path = tmp_path / "a.py"
    path.write_text("CLIP = 1")
    clock = Clock()
    clock.time = path.stat().st_ctime + 1.0
    dvm_wire.settle(str(path), clock, clock.pause)
    assert clock.pauses == 0
    clock.time = path.stat().st_ctime
    clock.while_paused = [lambda: path.write_text("CLIP = 1."), lambda: path.write_text("CLIP = 1.0\n")]
    dvm_wire.settle(str(path), clock, clock.pause)
    assert clock.pauses == 3


def test_settling_ends_for_a_file_that_is_not_there_and_for_one_that_never_rests(tmp_path):
    clock = Clock()
    dvm_wire.settle(str(tmp_path / "gone.py"), clock, clock.pause)
    assert clock.pauses == 1
    path = tmp_path / "a.py"
    path.write_text("")
    clock.time = path.stat().st_ctime
    clock.while_paused = [lambda n=n: path.write_text("#" * n) for n in range(1, 1000)]
    dvm_wire.settle(str(path), clock, clock.pause)
    assert 1 < clock.pauses < 999


def test_folders_that_are_there(tmp_path):
    assert folders([str(tmp_path / "a.py"), str(tmp_path / "b.py"), str(tmp_path / "gone" / "c.py")]) == [str(tmp_path)]


def test_an_answer_in_a_line():
    change = {"function": "RATE", "what": "value", "old": "0.1", "new": "0.2", "line": 3}
    body = {"outcome": "applied", "path": "/a/m.py", "step": 12, "changes": [change], "ms": 8.04,
            "instructionsPatched": 1, "instructionsTotal": 9}
    assert dvm_wire.outcome(body) == "m.py applied at step 12 · RATE: 0.1 → 0.2 · 1 of 9 instructions · 8.0 ms"
    many = dvm_wire.outcome({**body, "changes": [change] * 5})
    assert many.count("→") == 3 and "2 more changes" in many
    statements = [{"function": "forward", "what": "inserted", "old": "", "new": "h = relu(h)", "line": 4},
                  {"function": "forward", "what": "body", "old": "return h", "new": "return h * " + "x" * 50, "line": 5},
                  {"function": "scale", "what": "new function", "old": "", "new": "", "line": 9}]
    told = dvm_wire.outcome({**body, "changes": statements})
    assert f"forward: inserted h = relu(h) · forward: return h → return h * {'x' * 28}… · new function scale" in told
    assert dvm_wire.outcome({**body, "undone": True}).startswith("m.py undone at step 12")
    assert dvm_wire.outcome({"outcome": "unchanged", "path": "m.py"}) == "m.py unchanged: no function has changed"
    assert dvm_wire.outcome({"outcome": "refused", "path": "m.py", "reasons": ["a", "b"]}) == "m.py refused: a; b"


def test_a_file_that_was_closed_shortly_before_it_was_asked_for_is_a_save(tmp_path):
    path = tmp_path / "imported.py"
    path.write_text("x = 1")
    clock = Clock()
    saves = Saves(clock)
    assert saves.look([str(path)]) == []
    saves.files = {str(path)}
    assert saves.look() == [str(path)] and saves.look() == []
