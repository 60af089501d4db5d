"""Names of values from the source text."""
from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dvm_core as dvm
from dvm_core import _core
from dvm_core.agent import naming
from dvm_core.frontends import names

SOURCE = """
    def f(x):
        h = x * 2 + 1
        a, b = h * 3, h - 1
        total = (h *
                 a -
                 b)
        total += 1
        for _ in range(3):
            half = total * 0.5
            total = half + 1
        self = lambda: None
        self.kept = total.exp()
        first = second = self.kept * 2
        if first is not None:
            z: object = second - 1
        return z + total
"""


@pytest.fixture
def program(tmp_path: Path) -> Any:
    path = tmp_path / "user code.py"
    path.write_text(textwrap.dedent(SOURCE))
    space: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), space)
    dvm.jit(space["f"])(dvm.tensor(np.ones((2, 3), np.float32)))
    return _core.programs()[-1]


def test_assignments_name_their_last_value(program: Any) -> None:
    found = names.names_for_program(program)
    by_line: dict[int, list[str]] = {}
    for instruction in program.instructions:
        by_line.setdefault(_core.place_info(instruction.place)[1], []).append(found.get(instruction.index, "-"))
    assert by_line[3] == ["-", "h"]
    assert by_line[4] == ["a", "b"]
    assert [name for line in (5, 6, 7) for name in by_line.get(line, [])] == ["-", "total"]
    assert by_line[8] == ["total"]
    assert by_line[10] == ["half"] * 3 and by_line[11] == ["total"] * 3
    assert by_line[13] == ["self.kept"]
    assert by_line[14] == ["second"]
    assert by_line[16] == ["z"]
    assert by_line[17] == ["-"]


def test_backward_instructions_have_no_names() -> None:
    place = _core.place(__file__, 10)
    assert names.names_for_places([_core.backward_place(place), 0]) == {}


def test_source_that_is_gone_or_broken_gives_no_names(tmp_path: Path) -> None:
    assert names.assignments(str(tmp_path / "nowhere.py")) == {}
    broken = tmp_path / "broken.py"
    broken.write_text("h = (1 +\n")
    assert names.assignments(str(broken)) == {}


def test_results_of_a_split_take_the_targets_in_order(tmp_path: Path) -> None:
    path = tmp_path / "split.py"
    path.write_text("def f(x):\n    q, k, v = split(x)\n")
    places = [_core.place(str(path), 2, 2, 15, 23, "f")] * 4
    assert names.names_for_places(places) == {1: "q", 2: "k", 3: "v"}


CALLS = """
    def double(x):
        doubled = x * 2
        return doubled + 1

    def f(x):
        q = double(x.exp())
        k = q + double(x - 1)
        é = double(x.exp() + 1)
        return k + é
"""


def test_what_a_function_of_the_users_returns_takes_the_name_of_its_target(tmp_path: Path) -> None:
    path = tmp_path / "calls.py"
    path.write_text(textwrap.dedent(CALLS), encoding="utf-8")
    space: dict[str, Any] = {}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), space)
    x = dvm.tensor(np.ones((2, 3), np.float32))
    dvm.jit(space["f"])(x)
    program = _core.programs()[-1]
    found = names.names_for_program(program)
    listed = [(i.name, _core.place_info(i.place)[1], found.get(i.index, "-")) for i in program.instructions]
    assert [name for opcode, line, name in listed if line == 4] == ["q", "-", "é"]  # the sums that double returns
    assert [name for opcode, line, name in listed if line == 3] == ["doubled"] * 3
    assert [name for opcode, line, name in listed if line == 7] == ["-"]  # the argument of the call
    assert [name for opcode, line, name in listed if line == 8] == ["-", "k"]
    assert [name for opcode, line, name in listed if line == 9] == ["-", "-"]


def test_a_models_parameters_are_not_named_after_the_optimizer_that_holds_them():
    class Holder:
        def __init__(self, **parts):
            self._params = parts

    class Optimizer(Holder):
        pass

    class Adam(Optimizer):
        pass

    weight, moment = object(), object()
    net = Holder(weight=weight)
    # What a frame gives: variables that closures use come after all others.
    found = list(naming.parameters({"optimizer": Adam(weight=weight, moment=moment), "net": net}))
    assert [name for name, tensor in found if tensor is weight][0] == "net.weight"
    assert [name for name, tensor in found if tensor is moment] == ["optimizer.moment"]
