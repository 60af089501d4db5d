"""From lines to instructions: the map that is made once says what a look at every instruction says."""
from __future__ import annotations

import random

import numpy as np

import dvm_core as dvm
from dvm_core import _core
from dvm_core.agent.line_map import LineMap, line_map
from dvm_core.agent.places import Texts, place
from dvm_core.hotreload import SourceBook

LINES = 6


def looked_up(places, path, first, last):
    """(instructions of the lines, first ones of their runs) by looking at each."""
    found, runs, previous = [], [], None
    for index, number in enumerate(places):
        where = place(number)
        now = where.real == path and first <= where.line <= last, where.backward
        if now[0]:
            found.append(index)
            if now != previous:
                runs.append(index)
        if number:
            previous = now
    return found, runs


def check(lines, places, path):
    for first in range(LINES + 1):
        for last in range(first, LINES + 2):
            assert (lines.instructions(path, first, last), lines.runs(path, first, last)) == looked_up(places, path, first, last)


def test_places_drawn_at_random(tmp_path):
    drawn = random.Random(7)
    files = [str(tmp_path / name) for name in ("a.py", "b.py")]
    known = [0] + [_core.place(file, line, backward=backward) for file in files for line in range(1, LINES) for backward in (False, True)]
    for _ in range(40):
        places = tuple(drawn.choice(known[:drawn.choice((4, len(known)))]) for _ in range(drawn.randrange(40)))
        check(LineMap(places), places, files[0])


def test_a_program_says_the_place_of_each_instruction():
    @dvm.jit
    def scaled(x):
        for _ in range(3):
            x = x.exp() * \
                0.5
        return x

    scaled(dvm.tensor(np.ones((4, 4), np.float32))).numpy()
    program = next(p for p in reversed(_core.programs()) if any(place(number).path == __file__ for number in p.places))
    assert program.places == tuple(instruction.place for instruction in program.instructions)
    line = scaled.__wrapped__.__code__.co_firstlineno + 3
    assert line_map(program) is line_map(program)
    assert line_map(program).instructions(__file__, line, line) == list(range(len(program.places)))
    assert line_map(program).runs(__file__, line, line) == [0]


def test_the_statement_and_the_head_at_a_line_are_found_without_looking_at_all_others(tmp_path):
    class Line(int):
        compared = 0

        def __ge__(self, other):
            Line.compared += 1
            return int.__ge__(self, other)

    path = tmp_path / "long.py"
    text = "@f\ndef g{}(\n        a):\n    def h(\n            b):\n        c = (a +\n             b)\n\n"
    path.write_text("".join(map(text.format, range(500))))
    book = SourceBook()
    book.remember(str(path))
    texts, last = Texts(book), 499 * 8
    assert [texts.span(str(path), Line(last + line)) for line in range(1, 9)] == [
        (last + first, last + end) for first, end in ((1, 1), (2, 3), (2, 3), (4, 5), (4, 5), (6, 7), (6, 7), (8, 8))]
    assert [texts.headed(str(path), Line(last + line)) for line in range(1, 9)] == [
        *[("g499", last + 4, last + 7)] * 3, *[("h", last + 6, last + 7)] * 2, None, None, None]
    assert not Line.compared
