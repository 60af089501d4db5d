"""Which text the lines of a frame are numbered in, after reloads and their undo."""
# ruff: noqa: F811 - fixtures are named as what they are imported as
import gc
import sys

from reload_kit import program  # noqa: F401 - the fixture

TEXT = """import functools
RATE = 1


def outer(n):
    def inner(k):
        while True:
            yield k + n
    return inner


def numbers():
    while True:
        yield RATE


def stay():
    yield 1
"""


def old(p, generator):
    found = p.reloader.outdated.on(generator.gi_frame)
    assert all(frame is not sys._getframe() for frame, _ in found)
    return [text for _, text in found]


def test_a_call_in_flight_has_the_text_it_began_with_until_that_is_in_force_again(program):
    p = program(TEXT)
    numbers, inner, stay = p.module.numbers(), p.module.outer(1)(2), p.module.stay()
    for generator in (numbers, inner, stay):
        next(generator)
        assert old(p, generator) == []
    second = TEXT.replace("yield RATE", "yield RATE * 2").replace("k + n", "k - n")
    assert p.call_until(p.save(second), p.module.numbers).outcome == "applied"
    assert old(p, numbers) == old(p, inner) == [TEXT]
    assert old(p, stay) == []  # neither edited nor moved
    newer = p.module.numbers()
    next(newer)
    assert old(p, newer) == []
    third = second.replace("RATE = 1\n", "RATE = 1\n\n\n\n")
    assert p.call_until(p.save(third), p.module.numbers).outcome == "unchanged"
    assert (old(p, numbers), old(p, newer), old(p, stay)) == ([TEXT], [second], [second])  # lines that moved are another text, too
    p.call_until(p.undo(), p.module.numbers)
    assert (old(p, numbers), old(p, newer), old(p, stay)) == ([], [second], [])


def test_the_modules_own_code_has_the_first_text_for_good(program):
    p = program("import sys\nRATE = 1\n\n\ndef scale(x):\n    return x * 2\n")
    body = compile("def frames():\n    yield 1\n", str(p.path), "exec")
    frame = type("Frame", (), {"f_code": body, "f_back": None, "f_lineno": 1})()
    assert p.reloader.outdated.on(frame) == []
    first = p.path.read_text()
    p.call_until(p.save(first.replace("x * 2", "x * 3")))
    p.call_until(p.save(first.replace("x * 2", "x * 4")))
    assert [text for _, text in p.reloader.outdated.on(frame)] == [first]
    p.call_until(p.undo())
    p.call_until(p.undo())
    assert p.reloader.outdated.on(frame) == []


def test_replaced_code_that_nobody_runs_is_not_kept(program):
    p = program(TEXT)
    for number in range(70):  # the undo records of the last 64 hold their code
        p.call_until(p.save(TEXT.replace("yield RATE", f"yield RATE * {number + 2}")), p.module.numbers)
    gc.collect()
    assert len(p.reloader.outdated._texts) <= 2 * 66
