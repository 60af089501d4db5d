"""Exception filters: debugpy's for Python, ours for what numbers can do wrong."""
from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from .conditions import wrong_filter
from .errors import RequestError
from .registry import Body, Needs, request

if TYPE_CHECKING:
    from .session import Session

PYTHON_FILTERS = (
    {"filter": "raised", "label": "Raised Exceptions", "default": False, "description": "Stop wherever an exception is raised"},
    {"filter": "uncaught", "label": "Uncaught Exceptions", "default": True, "description": "Stop where the program is about to end by one"},
    {"filter": "userUnhandled", "label": "User Uncaught Exceptions", "default": False,
     "description": "Stop where an exception leaves user code for a library"},
)
_NONE = "exception: type unknown"  # debugpy's id where there is no exception
_PRICE = "Every result of a captured program is checked and kept meanwhile"
_SYNTAX = ("over statistics of each result: `abs_max > 100 and gradient`, `\"attn\" in name and std < 1e-6`; "
           "`every 10` at the end looks less often")


def _filter(name: str, label: str, description: str, default: str) -> dict[str, Any]:
    return {"filter": name, "label": label, "default": False, "description": f"{description}. {_PRICE}", "supportsCondition": True,
            "conditionDescription": f"{_SYNTAX}. Without one: {default}"}


TENSOR_FILTERS = (
    _filter("nan", "NaN in a Tensor", "Stop at the first instruction whose result holds a NaN", "nan > 0"),
    _filter("inf", "Infinity in a Tensor", "Stop at the first instruction whose result holds an infinity", "inf > 0"),
    _filter("overflow", "Overflow", "Stop where an infinity or NaN comes out of finite numbers", "any"),
    _filter("range", "Value out of Range", "Stop at the first result whose statistics are out of range", "abs_max > 65504"),
    _filter("zeros", "Too Many Zeros", "Stop at the first result that is all but zero", "zeros > 0.99 and count >= 16"),
    _filter("unchanged", "Weight Does Not Learn", "Stop where a weight is what it was a step ago, or changes too much or too little",
            "same"),
    _filter("diverged", "First Divergence",
            "Stop at the first result that differs from the same program in float64, unfused (`against fused`) or on another device "
            "(`against npu-sim:910b:faithful > 1e-3`)", "error > 1e-3 + 16 * eps, in float64"),
)
_OURS = tuple(str(entry["filter"]) for entry in TENSOR_FILTERS)
TYPES = {"nan": "NaN", "inf": "Infinity", "overflow": "Overflow", "range": "OutOfRange", "zeros": "Zeros", "unchanged": "Unchanged",
         "diverged": "Diverged"}


@request("setExceptionBreakpoints", supportsExceptionOptions=True, supportsExceptionFilterOptions=True,
         exceptionBreakpointFilters=[*PYTHON_FILTERS, *TENSOR_FILTERS])
async def set_exception_breakpoints(session: Session, arguments: Body) -> Body:
    """Splits the filters between the engines; one breakpoint per filter in the answer, in the order asked."""
    options = arguments.get("filterOptions") or []
    asked = [*arguments.get("filters", []), *(option.get("filterId") for option in options)]
    texts = {str(option.get("filterId")): option.get("condition") or "" for option in options}
    refused = {name: why for name in asked if name in _OURS and (why := wrong_filter(name, texts.get(name, "")))}
    session.breakpoints.filters = {name: texts.get(name, "") for name in asked if name in _OURS and name not in refused}
    known = {str(entry["filter"]) for entry in PYTHON_FILTERS}
    forwarded = {**arguments, "filters": [name for name in asked if name in known]}
    forwarded.pop("filterOptions", None)
    session.tracing.filters(arguments, asked)
    python = asyncio.ensure_future(session.breakpoints.ask_python("setExceptionBreakpoints", forwarded))
    if session.has_agent:
        refused |= (await session.tensors.ask("filters", conditions=session.breakpoints.filters)).get("refused") or {}
    await python

    def answer(name: str) -> dict[str, Any]:
        if name in refused:
            return {"verified": False, "reason": "failed", "message": refused[name]}
        known_here = name in known or name in _OURS
        return {"verified": True} if known_here else {"verified": False, "message": f"there is no filter {name!r}"}

    return {"breakpoints": [answer(name) for name in asked]}


@request("exceptionInfo", needs=Needs.STOPPED, supportsExceptionInfoRequest=True)
async def exception_info(session: Session, arguments: Body) -> Body:
    stop = session.stops.current
    event = (stop.vm or stop.found) if stop is not None and stop.thread == arguments.get("threadId") else None
    if event is None or event.get("reason") not in TYPES:
        told = await session.python.ask("exceptionInfo", arguments)
        if told.get("exceptionId") == _NONE:
            raise RequestError("the program does not stand at an exception")
        return told
    kind = TYPES[event["reason"]]
    frame = stop.tensor or {} if stop else {}
    text = str(event.get("text") or f"{kind} in {frame.get('name', 'a tensor')}")
    details = {"message": text, "typeName": kind, "fullTypeName": f"dvm.{kind}"}
    if frame.get("path"):
        direction = "backward of " if frame.get("backward") else ""
        details["stackTrace"] = (f'  File "{frame["path"]}", line {frame.get("line")}, in {direction}{frame.get("function")}\n'
                                 f'    {frame.get("name")}\n')
    return {"exceptionId": kind, "description": text, "breakMode": "always", "details": details}
