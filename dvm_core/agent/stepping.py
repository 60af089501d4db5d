"""Where a step of the VM ends: by instruction, by line, out of the function."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .places import Place, place
from .views import LaunchView


def _here(view: LaunchView) -> int:
    """A numeric filter stops when its launch has ended: steps then lead through what has been computed."""
    return view.at if view.launch.done else view.launch.next


def _next_instruction(view: LaunchView) -> int:
    return _here(view) + 1


def _next_line(view: LaunchView) -> int:
    def statement(where: Place) -> tuple[object, ...]:
        return where.path, view.texts.span(where.path, where.line), where.backward

    here = statement(view.place)
    return _first_after(view, lambda there: statement(there) != here)


def _out_of_function(view: LaunchView) -> int:
    here = view.place
    return _first_after(view, lambda there: (there.path, there.function) != (here.path, here.function))


def _first_after(view: LaunchView, differs: Any) -> int:
    for index in range(_here(view) + 1, len(view.instructions)):
        number = view.instructions[index].place
        if number and differs(place(number)):
            return index
    return len(view.instructions)


TARGETS: dict[str, Callable[[LaunchView], int]] = {
    "instruction": _next_instruction, "line": _next_line, "out": _out_of_function,
    "into": _next_instruction,  # where there is no tile code to go into
    "tile": _next_instruction,  # as `into`, but refused there
}
