"""What a run keeps of its lines: shapes as ranges, names, areas; lines that were edited since are left out."""
from __future__ import annotations

import linecache
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dvm_wire import lastrun as kept

import dvm_core as dvm
from dvm_core.lastrun import Recorder

SOURCE = "def f(x, w):\n    h = x @ w\n    return (h - 1.0).tanh()\n"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DVM_CACHE", str(tmp_path / "cache"))


def function(path: Path, text: str) -> Any:
    path.write_text(text)
    linecache.checkcache(str(path))
    names: dict[str, Any] = {}
    exec(compile(text, str(path), "exec"), names)
    return dvm.jit(names["f"])


def run(f: Any, rows: int) -> None:
    f(dvm.tensor(np.ones((rows, 3), np.float32)), dvm.tensor(np.ones((3, 2), np.float32))).numpy()


def test_ranges_names_and_areas_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    f = function(path, SOURCE)
    for rows in (2, 5, 3):
        run(f, rows)
    Recorder().look(at_once=True)
    told = kept.load(str(path))
    assert told is not None
    h = next(value for value in told["values"] if value["op"] == "MATMUL")
    assert (h["name"], h["line"], h["dtype"]) == ("h", 2, "f32")
    assert [dim[1:] for dim in h["dims"]] == [[2, 5], [2, 2]] and h["dims"][0][0]
    assert h["lines"] == [2, 3] and told["texts"][2] == "    h = x @ w"


def test_what_was_gathered_of_a_line_that_is_another_now_is_dropped(tmp_path: Path) -> None:
    path, recorder = tmp_path / "b.py", Recorder()
    run(function(path, SOURCE), 2)
    recorder.look(at_once=True)
    run(function(path, "# moved\n" + SOURCE), 4)
    recorder.look(at_once=True)
    told = kept.load(str(path))
    assert told is not None
    assert [(v["op"], v["line"]) for v in told["values"]] == [("MATMUL", 3), ("SUB", 4), ("TANH", 4)]


def test_a_file_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.save("x.py", {"texts": {}, "values": [], "functions": [], "notices": []})
    monkeypatch.setattr("dvm_wire.lastrun.MOST_BYTES", 4)
    kept.save("y.py", {"texts": {}, "values": [], "functions": [], "notices": []})
    assert [file.suffix for file in kept.folder().iterdir()] == [".json"]


BAD = [("launches", "3"), ("us", "fast"), ("us", -1), ("verdict", 3), ("line", -2), ("shapes", True)]


@pytest.mark.parametrize(("field", "value"), BAD)
def test_functions_of_another_form_are_left_out(tmp_path: Path, field: str, value: Any) -> None:
    good = {"name": "f", "line": 1, "launches": 3, "us": 2.5, "shapes": 1, "verdict": "", "why": "", "do": ""}
    kept.save("x.py", {"texts": {}, "values": [], "functions": [good, {**good, field: value}], "notices": []})
    told = kept.load("x.py")
    assert told is not None and told["functions"] == [good]


def test_times_alone_are_saved_ever_more_rarely_and_a_new_shape_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, saved = [0.0], []
    monkeypatch.setattr("dvm_core.lastrun.time", types.SimpleNamespace(monotonic=lambda: clock[0]))

    def save(path: str, told: dict[str, Any]) -> None:
        if path == str(tmp_path / "c.py"):
            saved.append(clock[0])
            clock[0] += 0.1  # it takes as long

    monkeypatch.setattr("dvm_core.lastrun.lastrun.save", save)
    monkeypatch.setattr("dvm_core.lastrun._MOST_PROGRAMS", 1 << 30)  # those of other tests are no news after the first look
    f, recorder = function(tmp_path / "c.py", SOURCE), Recorder()

    def pass_by(seconds: int, rows: int) -> None:
        for _ in range(seconds):
            clock[0] += 1
            run(f, rows)
            recorder.look()

    pass_by(300, 2)
    assert len(saved) == 9 and saved[1] - saved[0] < 4 and saved[-1] - saved[-2] > 60
    pass_by(2, 7)
    assert len(saved) == 10
    for _ in range(2):
        recorder.look(at_once=True)
    assert len(saved) == 11  # nothing has run between the two
    run(f, 7)
    recorder.stop()
    assert len(saved) == 12
