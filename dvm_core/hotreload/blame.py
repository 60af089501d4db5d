"""Whether an edit has a part in an exception that the program has met since."""
from __future__ import annotations

import dis
from collections.abc import Callable, Iterator
from types import CodeType, FrameType, TracebackType

from ..errors import chain
from .edits import APPLY
from .plan import Plan


def had_a_part(error: BaseException, plan: Plan, of_the_program: Callable[[str], bool]) -> bool:
    """Whether it came through code that was exchanged, or that uses a name that was; but not what code of the program's own, which was not
    exchanged, has raised on purpose. of_the_program(path): whether a file is one of the program's own."""
    exchanged = plan.patch.assignments
    codes = {assignment.function.__code__ for assignment in exchanged if assignment.function is not None}
    names = {str(assignment.where[1]) for assignment in exchanged if assignment.function is None and len(assignment.where) > 1}
    names |= {edit.key.rpartition(".")[2] for edit in plan.edits if edit.verdict == APPLY}
    about: list[CodeType] = list(getattr(error, "codes", ()))  # of one about results: the function that gave them
    for link in chain(error):
        own = [(frame.f_code, step.tb_lasti) for step, frame in _steps(link) if of_the_program(frame.f_code.co_filename)]
        if own and own[-1][0] not in codes and _raises(*own[-1]):
            return False
        about += [code for code, _ in own]
    return any(code in codes or not names.isdisjoint(code.co_names) for code in about)


def _steps(error: BaseException) -> Iterator[tuple[TracebackType, FrameType]]:
    step = error.__traceback__
    while step is not None:
        yield step, step.tb_frame
        step = step.tb_next


def _raises(code: CodeType, offset: int) -> bool:
    """Whether the instruction there is that of a `raise` statement."""
    return dis.opname[code.co_code[offset]] == "RAISE_VARARGS" if 0 <= offset < len(code.co_code) else False
