"""Exception filters: debugpy's for Python, ours for what numbers can do wrong."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .registry import Body, Needs, request

if TYPE_CHECKING:
    from .session import Session

PYTHON_FILTERS = (
    {"filter": "raised", "label": "Raised Exceptions", "default": False, "description": "Stop wherever an exception is raised"},
    {"filter": "uncaught", "label": "Uncaught Exceptions", "default": True, "description": "Stop where the program is about to end by one"},
    {"filter": "userUnhandled", "label": "User Uncaught Exceptions", "default": False,
     "description": "Stop where an exception leaves user code for a library"},
)
_PRICE = "Every result of a captured program is checked and kept meanwhile"
TENSOR_FILTERS = (
    {"filter": "nan", "label": "NaN in a Tensor", "default": False,
     "description": f"Stop at the first instruction whose result holds a NaN. {_PRICE}"},
    {"filter": "inf", "label": "Infinity in a Tensor", "default": False,
     "description": f"Stop at the first instruction whose result holds an infinity. {_PRICE}"},
)
_OURS = tuple(str(entry["filter"]) for entry in TENSOR_FILTERS)
_TYPES = {"nan": "NaN", "inf": "Infinity"}


@request("setExceptionBreakpoints", supportsExceptionOptions=True, exceptionBreakpointFilters=[*PYTHON_FILTERS, *TENSOR_FILTERS])
async def set_exception_breakpoints(session: Session, arguments: Body) -> Body:
    """Splits the filters between the engines; one breakpoint per filter in the answer, in the order asked."""
    asked = [*arguments.get("filters", []), *(option.get("filterId") for option in arguments.get("filterOptions") or [])]
    session.breakpoints.filters = [name for name in asked if name in _OURS]
    known = {str(entry["filter"]) for entry in PYTHON_FILTERS}
    forwarded = {**arguments, "filters": [name for name in asked if name in known]}
    forwarded.pop("filterOptions", None)
    session.tracing.filters(arguments, asked)
    python = session.python.request("setExceptionBreakpoints", forwarded)
    if session.has_agent:
        await session.tensors.ask("filters", names=session.breakpoints.filters)
    await python
    answers: list[dict[str, Any]] = [{"verified": True} if name in known or name in _OURS
                                     else {"verified": False, "message": f"there is no filter {name!r}"} for name in asked]
    return {"breakpoints": answers}


@request("exceptionInfo", needs=Needs.STOPPED, supportsExceptionInfoRequest=True)
async def exception_info(session: Session, arguments: Body) -> Body:
    stop = session.stops.current
    event = stop.vm if stop is not None and stop.thread == arguments.get("threadId") else None
    if event is None or event.get("reason") not in _TYPES:
        return await session.python.ask("exceptionInfo", arguments)
    kind = _TYPES[event["reason"]]
    frame = stop.tensor or {} if stop else {}
    text = str(event.get("text") or f"{kind} in {frame.get('name', 'a tensor')}")
    details = {"message": text, "typeName": kind, "fullTypeName": f"dvm.{kind}"}
    if frame.get("path"):
        direction = "backward of " if frame.get("backward") else ""
        details["stackTrace"] = (f'  File "{frame["path"]}", line {frame.get("line")}, in {direction}{frame.get("function")}\n'
                                 f'    {frame.get("name")}\n')
    return {"exceptionId": kind, "description": text, "breakMode": "always", "details": details}
