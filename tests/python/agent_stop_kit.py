"""A model of four lines, its program recorded by hand, and an adapter over a real socket: what tests of stops share."""
import numpy as np
import pytest

from dvm_core import _core
from dvm_core.frontends import capture


def op(name):
    return next(code for n, code, *_ in _core.OPS if n == name)


class Capture(capture.Capture):
    """What a front end does, by hand: values are recorded with the line of this file that contains a marker."""

    def __init__(self, name, mode="stream"):
        super().__init__(_core.Graph(name), name, 1)
        self.mode = mode
        self.graph.step = 1
        self.held = {}

    def __enter__(self):
        capture.push(self)
        return self

    def __exit__(self, *error):
        capture.pop(self)

    def input(self, array):
        value = self.graph.input(array.__array_interface__["data"][0], array.shape, 1, None, array, "parameter")
        self.held[id(array)] = value
        return value

    def find(self, tensor):
        return self.held.get(id(tensor))

    def flush_all(self):
        self.graph.flush(keep=[v for v in range(self.graph.size()) if not self.graph.in_memory(v)])

    def add(self, name, operands, line, backward=False, imms=(), called=""):
        place = _core.place(model.path, line, 0, 5, 0, "forward", backward)
        return self.graph.op(op(name), operands, imms=imms, place=place, name=called)


SOURCE = """def forward(x):
    h = x * 2
    s = exp(h)
    y = s / x
    return y
"""
LINE_H, LINE_S, LINE_Y = 2, 3, 4


def model(x, mode="stream"):
    """Forward and backward in one program: 0 h, 1 s, 2 y, 3 and 4 the gradients of the lines of s and h."""
    rate = 100  # noqa: F841 - for a condition to read
    with Capture("forward", mode) as c:
        v = c.input(x)
        h = c.add("MUL", (v, -1), LINE_H, imms=(2.0,), called="h")
        s = c.add("EXP", (h,), LINE_S, called="s")
        y = c.add("DIV", (s, v), LINE_Y, called="y")
        gs = c.add("MUL", (y, s), LINE_S, backward=True, called="grad(s)")
        gx = c.add("MUL", (gs, -1), LINE_H, backward=True, imms=(2.0,), called="grad(x)")
        launch = c.graph.flush(keep=[y, gx])
        return c.graph.array(y).copy(), c.graph.array(gx).copy(), launch.program.id


X = np.linspace(1, 2, 12, dtype=np.float32).reshape(3, 4)


@pytest.fixture(autouse=True)
def source(tmp_path):
    """Each test its own file, so its own programs: they are cached for the life of the process."""
    path = tmp_path / "model.py"
    path.write_text(SOURCE)
    model.path = str(path)


def same(a, b):
    return all(np.array_equal(u, v) for u, v in zip(a[:2], b[:2], strict=True))


def breakpoint_on(adapter, line, mode="backward", **more):
    return adapter.request("breakpoints", lines=[{"id": 7, "path": model.path, "line": line, "mode": mode, **more}])["results"][0]
