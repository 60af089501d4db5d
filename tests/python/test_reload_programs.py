"""What an edit does to the bytecode: the same program with other numbers, or another one; what was compiled for the old is let go."""
import itertools
import sys
import time

import numpy as np
import pytest
from reload_cases import load

import dvm_core as dvm
from dvm_core import _core
from dvm_core.frontends import capture, reloadable
from dvm_core.hotreload import Host, Reloader, SourceBook

MODEL = """import dvm_core as dvm


@dvm.jit(MODE)
def forward(x):
    h = x * 2.0
    return h - 0.5
"""
LOSS = """import mindspore as ms
import dvm_core as dvm


@dvm.jit
def forward(w, x):
    h = ms.ops.exp(x * w)
    return (h * 2.0).sum()


gradient = ms.value_and_grad(forward)
"""
NUMBERS = itertools.count()


class Edited:
    """A module that is edited while its captured function is called."""

    def __init__(self, path, text, call):
        self.path, self.text, self.call = path, text.replace("forward", path.stem), call  # programs go by their function's name
        path.write_text(self.text)
        self.module = load(path, path.stem)
        book = SourceBook()
        book.remember(str(path))
        self.reloader = Reloader(book, Host(reloadable, _core.programs, step=reloadable.step, capturing=lambda: bool(capture.captures())))

    def answer(self, ask):
        """What a request is answered while the calls go on."""
        answers, end = [], time.monotonic() + 60
        ask(answers.append)
        while not answers:
            assert time.monotonic() < end
            self.call(self.module)
        assert answers[0].outcome == "applied", answers[0].reasons
        return answers[0]

    def save(self, old, new):
        assert old in self.text
        self.text = self.text.replace(old, new)
        self.path.write_text(self.text)
        return self.answer(lambda reply: self.reloader.reload(str(self.path), None, reply))

    def programs(self):
        """Of the module's functions, by id."""
        ours = {p.id for p in dvm.programs() if any(entry["file"] == str(self.path) for entry in p.line_map())}
        return {p.id: p for p in _core.programs() if p.id in ours}


@pytest.fixture
def edited(tmp_path, request):
    made = []

    def make(text, call):
        made.append(Edited(tmp_path / f"edited_{next(NUMBERS)}.py", text, call))
        return made[-1]

    yield make
    for one in made:
        sys.modules.pop(one.path.stem, None)


X = dvm.tensor(np.full((2, 3), 3.0, np.float32))


def called(module):
    return float(getattr(module, module.__name__)(X).numpy()[0, 0])


@pytest.mark.parametrize("mode", ["", 'mode="graph"'])
def test_another_number_is_written_beside_the_same_code(edited, mode):
    e = edited(MODEL.replace("MODE", mode), called)
    assert called(e.module) == 5.5
    (program,) = e.programs().values()
    segments, misses = program.segments, _core.stats()["selector_misses"]
    answer = e.save("x * 2.0", "x * 4.0")
    assert (answer.patched, answer.total) == (1, 2) and called(e.module) == 11.5
    assert list(e.programs()) == [program.id] and program.segments == segments == 1
    assert _core.stats()["selector_misses"] == misses, "nothing was compiled"


@pytest.mark.parametrize("mode", ["", 'mode="graph"'])
@pytest.mark.parametrize("old, new, value", [("x * 2.0", "x + 2.0", 4.5), ("h - 0.5", "h.exp() - 0.5", np.exp(np.float32(6)) - 0.5)])
def test_other_instructions_are_another_program_and_the_old_ones_code_is_let_go(edited, mode, old, new, value):
    e = edited(MODEL.replace("MODE", mode), called)
    assert called(e.module) == 5.5
    (before,) = e.programs().values()
    assert before.segments == 1
    answer = e.save(old, new)
    assert answer.patched == 1 and called(e.module) == pytest.approx(value, rel=1e-6)
    assert before.segments == 0
    (after,) = (program for number, program in e.programs().items() if number != before.id)
    assert after.segments == 1
    e.answer(lambda reply: e.reloader.undo(reply))
    assert called(e.module) == 5.5 and (before.segments, after.segments) == (1, 0)


def test_the_backward_program_is_made_anew_with_its_forward(edited):
    ms = pytest.importorskip("mindspore")
    w, x = (ms.Tensor(np.full(3, v, np.float32)) for v in (0.5, 2.0))

    def both(module):
        value, gradient = module.gradient(w, x)
        return float(value.asnumpy()), gradient.asnumpy()

    e = edited(LOSS, both)
    value, gradient = both(e.module)
    assert value == pytest.approx(6 * np.e, rel=1e-6) and gradient == pytest.approx(4 * np.e, rel=1e-6)
    before = e.programs()
    assert {p.backward for p in before.values()} == {True, False} and all(p.segments for p in before.values())
    e.save("ms.ops.exp(x * w)", "ms.ops.tanh(x * w)")
    value, gradient = both(e.module)
    assert value == pytest.approx(6 * np.tanh(1), rel=1e-5) and gradient == pytest.approx(4 * (1 - np.tanh(1) ** 2), rel=1e-5)
    assert not any(p.segments for p in before.values())
    after = [p for number, p in e.programs().items() if number not in before]
    assert {p.backward for p in after} == {True, False} and all(p.segments for p in after)
