"""The types of DAP's own arguments: a wrong one is refused here, since debugpy's server in the program ends its session by some."""
from __future__ import annotations

from typing import Any

from . import own_arguments
from .errors import RequestError
from .own_arguments import short

_NAMES = {int: "a whole number", str: "a text", dict: "an object", list: "a list"}
_TYPES: dict[str, type] = {
    "threadId": int, "frameId": int, "variablesReference": int, "start": int, "count": int, "startFrame": int, "levels": int, "line": int,
    "column": int, "endLine": int, "endColumn": int, "targetId": int, "offset": int, "instructionOffset": int, "instructionCount": int,
    "startModule": int, "moduleCount": int, "sourceReference": int,
    "expression": str, "context": str, "filter": str, "value": str, "text": str,
    "granularity": str, "memoryReference": str, "name": str, "data": str, "source": dict, "format": dict,
    "breakpoints": list, "filters": list, "filterOptions": list, "exceptionOptions": list, "lines": list,
}
_ITEMS: dict[str, dict[str, type]] = {
    "breakpoints": {"name": str, "instructionReference": str, "dataId": str},
    "filterOptions": {"filterId": str, "condition": str}, "exceptionOptions": {},
}
_REQUIRED: dict[str, tuple[str, ...]] = {
    "next": ("threadId",), "stepIn": ("threadId",), "stepOut": ("threadId",), "pause": ("threadId",), "stackTrace": ("threadId",),
    "exceptionInfo": ("threadId",), "stepInTargets": ("frameId",), "scopes": ("frameId",), "variables": ("variablesReference",),
    "evaluate": ("expression",), "setVariable": ("variablesReference", "name", "value"), "setExpression": ("expression", "value"),
    "completions": ("text", "column"), "gotoTargets": ("source", "line"), "goto": ("threadId", "targetId"),
    "breakpointLocations": ("source", "line"), "dataBreakpointInfo": ("name",), "readMemory": ("memoryReference",),
    "writeMemory": ("memoryReference", "data"),
}


def checked(command: str, arguments: Any) -> dict[str, Any]:
    """The arguments of a request, without those that are null. Raises RequestError for a type that the protocol does not allow."""
    if not isinstance(arguments, dict):
        raise RequestError(f"the arguments of {command} are no object")
    if command.startswith("dvm/"):
        return own_arguments.checked(command, arguments)
    if command in ("initialize", "launch", "attach"):
        return arguments  # not these names, or with meanings of their own
    given = {name: value for name, value in arguments.items() if value is not None}
    _check(given, _TYPES)
    missing = [name for name in _REQUIRED.get(command, ()) if name not in given]
    if missing:
        raise RequestError(f"{command} without {' and '.join(missing)}")
    for name, fields in _ITEMS.items():
        for item in given.get(name, ()):
            if not isinstance(item, dict):
                raise RequestError(f"an item of {name} is {short(item)}; it must be an object")
            _check({key: value for key, value in item.items() if value is not None}, fields)
            if command == "setFunctionBreakpoints" and not item.get("name"):
                raise RequestError("a function breakpoint without a name")
    if not all(isinstance(item, str) for item in given.get("filters", ())):
        raise RequestError("an item of filters is no text")
    return given


def _check(given: dict[str, Any], types: dict[str, type]) -> None:
    for name, value in given.items():
        wanted = types.get(name)
        if wanted is not None and (not isinstance(value, wanted) or isinstance(value, bool)):
            raise RequestError(f"{name} is {short(value)}; it must be {_NAMES[wanted]}")
