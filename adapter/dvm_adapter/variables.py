"""Tensors as variables: one line of summary, fixed children, values paged by index."""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dvm_wire import number

from .channel import Message
from .errors import RequestError
from .references import is_ours
from .registry import Body, Needs, request
from .stack import TensorScope, TileScope, source_of

if TYPE_CHECKING:
    from .session import Session

# Without paging the client would get every element at once.
UNPAGED = 1000
LARGEST_PAGE = 10_000
# Rows are shown with their first elements when a page of rows is cheap to fetch.
PREVIEW_ELEMENTS = 4096
PREVIEW_PER_ROW = 8


@dataclass
class Tensor:
    """A tensor of the current stop, as the agent described it."""

    told: Message

    @property
    def ref(self) -> Any:
        return self.told.get("ref")

    @property
    def computed(self) -> bool:
        return bool(self.told.get("computed"))

    @property
    def missing(self) -> str:
        """Why there are no values: not reached yet, or fused away."""
        return str(self.told.get("reason") or "not yet computed")

    @property
    def shape(self) -> list[int]:
        return list(self.told.get("shape") or [])


@dataclass
class Statistics:
    """The lazy child: one line, and below it one figure a line."""

    tensor: Tensor
    opened: bool = False


@dataclass
class Values:
    """Elements under a prefix of indices: rows while `shape` has more than one axis."""

    tensor: Tensor
    start: int
    shape: list[int]
    prefix: tuple[int, ...] = ()


@dataclass
class Place:
    """Where a tensor was made, for `locations`."""

    path: str
    line: int


def variable_for(session: Session, told: Message, name: str | None = None) -> Message:
    """A tensor as a variable (also an evaluate result, which has `result` for `value`)."""
    tensor = Tensor(told)
    value = str(told.get("summary") or _type_of(told))
    if not tensor.computed:
        value += "  " + tensor.missing
    reference = session.references.add(tensor)
    shown: Message = {"name": name or str(told.get("name") or "?"), "value": value, "type": _type_of(told), "variablesReference": reference,
                      "namedVariables": 7, "evaluateName": told.get("name") or name}
    if tensor.computed and session.client_arguments.get("supportsMemoryReferences"):
        shown["memoryReference"] = hex(reference)
    return shown


def _type_of(told: Message) -> str:
    return f"{told.get('dtype', '?')}[{','.join(map(str, told.get('shape') or []))}]"


@request("variables", needs=Needs.STOPPED)
async def variables(session: Session, arguments: Body) -> Body:
    reference = arguments.get("variablesReference")
    if not is_ours(reference):
        return await session.python.ask("variables", arguments)
    thing = session.references.get(reference, object)
    for kind, children in _CHILDREN.items():
        if isinstance(thing, kind):
            return {"variables": await children(session, thing, arguments)}
    raise RequestError(f"{reference} has no children")


async def _tensors(session: Session, scope: TensorScope, arguments: Body) -> list[Message]:
    listed = (await session.tensors.ask("tensors")).get("tensors") or []
    return [variable_for(session, told) for told in listed]


async def _tile_values(session: Session, scope: TileScope, arguments: Body) -> list[Message]:
    listed = (await session.tensors.ask("tileValues")).get("tensors") or []
    return [{**variable_for(session, told), "presentationHint": {"attributes": ["readOnly"]}} for told in listed]


async def _fixed_children(session: Session, tensor: Tensor, arguments: Body) -> list[Message]:
    told = tensor.told
    if arguments.get("filter") == "indexed":
        return []

    def child(name: str, value: Any, **more: Any) -> Message:
        return {"name": name, "value": str(value), "variablesReference": 0, "presentationHint": {"attributes": ["readOnly"]}, **more}

    count = math.prod(tensor.shape)
    children = [
        child("shape", "[" + ", ".join(map(str, tensor.shape)) + "]"),
        child("dtype", told.get("dtype", "?")),
        child("device", told.get("device", "?")),
        child("strides", "[" + ", ".join(map(str, told.get("strides") or [])) + "]" if told.get("strides") is not None else "unknown"),
    ]
    if tensor.computed:
        children.append(child("statistics", "", variablesReference=session.references.add(Statistics(tensor)),
                              presentationHint={"attributes": ["readOnly"], "lazy": True}))
        first = tensor.shape[0] if tensor.shape else 1
        values = Values(tensor, 0, tensor.shape)
        children.append(child("values", f"[0…{first - 1}]" if count else "no elements", indexedVariables=first if count else 0,
                              variablesReference=session.references.add(values) if count else 0))
    else:
        children.append(child("statistics", tensor.missing))
        children.append(child("values", tensor.missing))
    children.append(_made_at(session, told))
    return children


def _made_at(session: Session, told: Message) -> Message:
    place = told.get("place") or {}
    shown: Message = {"name": "made at", "value": "unknown", "variablesReference": 0, "presentationHint": {"attributes": ["readOnly"]}}
    if place.get("path"):
        direction = " (backward)" if place.get("backward") else ""
        shown["value"] = f"{source_of(place['path'])['name']}:{place.get('line')}  {place.get('function') or ''}{direction}".rstrip()
        shown["valueLocationReference"] = session.references.add(Place(place["path"], place.get("line") or 1))
    return shown


# agent's name -> label, in the order shown
_FIGURES = (("min", "min"), ("max", "max"), ("mean", "mean"), ("std", "std"), ("count", "elements"), ("finite", "finite"),
            ("zero", "zeros"), ("nan", "NaN"), ("pos_inf", "+Inf"), ("neg_inf", "−Inf"))


def figure(value: Any) -> str:
    """Three significant digits; whole numbers as they are."""
    try:
        value = number(value)
    except Exception:
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if value != value else "+Inf" if value > 0 else "−Inf"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"


async def _statistics(session: Session, statistics: Statistics, arguments: Body) -> list[Message]:
    told = statistics.tensor.told
    if not told.get("stats"):
        told = await session.tensors.ask("tensor", ref=statistics.tensor.ref, maxBytes=0)
        statistics.tensor.told["stats"] = told.get("stats") or {}
    stats = statistics.tensor.told["stats"]
    if statistics.opened:
        return [{"name": label, "value": figure(stats[key]), "variablesReference": 0, "presentationHint": {"attributes": ["readOnly"]}}
                for key, label in _FIGURES if key in stats]
    # A lazy variable is replaced by its one child.
    line = "  ".join(f"{label} {figure(stats[key])}" for key, label in _FIGURES if key in stats and (key in ("min", "max", "mean", "std")
                                                                                                       or stats[key]))
    opened = session.references.add(Statistics(statistics.tensor, opened=True)) if stats else 0
    return [{"name": "statistics", "value": line or "none for this dtype", "variablesReference": opened}]


def wants_hex(arguments: Body) -> bool:
    """Whether the client asks for integers in hexadecimal (DAP's ValueFormat)."""
    form = arguments.get("format")
    return isinstance(form, dict) and form.get("hex") is True


def in_hex(text: str) -> str:
    """A whole number in hexadecimal, its sign before it; any other text as it is."""
    try:
        return hex(int(text))
    except ValueError:
        return text


def _texts(values: Values, told: Message, arguments: Body) -> list[str]:
    """The elements as shown: those of an integer tensor in the notation asked for."""
    whole = str(values.tensor.told.get("dtype", "")).startswith(("int", "uint"))
    texts = [str(text) for text in told.get("values") or []]
    return [in_hex(text) for text in texts] if whole and wants_hex(arguments) else texts


async def _values(session: Session, values: Values, arguments: Body) -> list[Message]:
    if arguments.get("filter") == "named":
        return []
    total = values.shape[0] if values.shape else 1
    start, count = 0, total
    if session.client_arguments.get("supportsVariablePaging"):
        start = max(0, arguments.get("start") or 0)
        count = arguments.get("count") or total
    else:
        count = min(total, UNPAGED)
    count = max(0, min(count, total - start, LARGEST_PAGE))
    if not count:
        return []
    if len(values.shape) > 1:
        return await _rows(session, values, start, count, arguments)
    told = await session.tensors.ask("elements", ref=values.tensor.ref, start=values.start + start, count=count)
    texts = _texts(values, told, arguments)
    shown = [{"name": str(start + i), "value": text, "type": values.tensor.told.get("dtype", ""), "variablesReference": 0}
             for i, text in enumerate(texts)]
    if not session.client_arguments.get("supportsVariablePaging") and total > count:
        shown.append({"name": "…", "value": f"{total - count} more", "variablesReference": 0})
    return shown


async def _rows(session: Session, values: Values, start: int, count: int, arguments: Body) -> list[Message]:
    """One variable per index of the first axis."""
    rest = values.shape[1:]
    step = math.prod(rest)
    texts: list[str] = []
    if count * step <= PREVIEW_ELEMENTS:
        told = await session.tensors.ask("elements", ref=values.tensor.ref, start=values.start + start * step, count=count * step)
        texts = _texts(values, told, arguments)
    shown = []
    for i in range(count):
        row = texts[i * step:(i + 1) * step]
        value = f"[{', '.join(map(str, rest))}]"
        if row:
            value = "[" + ", ".join(row[:PREVIEW_PER_ROW]) + (", …]" if len(row) > PREVIEW_PER_ROW else "]")
        part = Values(values.tensor, values.start + (start + i) * step, rest, (*values.prefix, start + i))
        shown.append({"name": str(start + i), "value": value, "variablesReference": session.references.add(part),
                      "indexedVariables": rest[0]})
    return shown


_CHILDREN: dict[type, Any] = {TensorScope: _tensors, TileScope: _tile_values, Tensor: _fixed_children, Statistics: _statistics,
                              Values: _values}
