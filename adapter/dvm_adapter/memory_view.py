"""`dvm/memoryView`: what the Memory View draws of a stretch of time, at the resolution of a screen however long the log is."""
from __future__ import annotations

import asyncio
import bisect
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .errors import RequestError
from .memory_model import Buffer, read_buffers, timeline
from .registry import Body, Needs, request

if TYPE_CHECKING:
    from .session import Session

MOST_BLOCKS = 2000  # buffers of a view that are sent one by one: the largest
MOST_POINTS = 1200  # columns of the curves
MOST_CONTRIBUTORS = 20
MOST_STEPS = 200
_THIN = 300  # a block counts as at least that part of the view's width, so that short and large ones are kept


@dataclass
class Log:
    """The log as it was when the view was last drawn afresh: zooming and choosing look at the same one."""

    body: Body
    buffers: list[Buffer]
    entries: dict[int, Body]  # the wire's own entry of each buffer
    lanes: Lanes
    steps: list[Body]

    @classmethod
    def of(cls, body: Body) -> Log:
        buffers = read_buffers(body)
        entries = {entry["id"]: entry for entry in body.get("buffers") or [] if "id" in entry}
        return cls(body, buffers, entries, Lanes(buffers), steps_of(buffers))


def steps_of(buffers: list[Buffer]) -> list[Body]:
    """The newest steps, oldest first: step, from, to, and the most bytes alive in it."""
    if not buffers:
        return []
    begun: dict[int, int] = {}
    for buffer in buffers:
        begun.setdefault(buffer.step, buffer.born)
    ends = [*list(begun.values())[1:], max((max(b.born, b.freed or 0) for b in buffers), default=0) + 1]
    curve = timeline(buffers, max(1, 2 * len(buffers)))  # every moment
    told = []
    for (step, first), last in list(zip(begun.items(), ends, strict=True))[-MOST_STEPS:]:
        at = bisect.bisect_left(curve.times, first), bisect.bisect_left(curve.times, last)
        told.append({"step": step, "from": first, "to": last, "peak": max(curve.totals[slice(*at)], default=0)})
    return told


class Lanes:
    """Addresses without the gaps between them: where a buffer lies on an axis that only used memory takes part in. Bytes."""

    def __init__(self, buffers: list[Buffer]) -> None:
        self._starts: list[int] = []
        self._lows: list[int] = []
        end = self.height = 0
        for low, high in sorted({(buffer.address, buffer.address + buffer.bytes) for buffer in buffers}):
            if not self._starts or low > end:
                self._starts.append(low)
                self._lows.append(self.height)
                end = low
            self.height += max(0, high - end)
            end = max(end, high)

    def low(self, address: int) -> int:
        region = bisect.bisect_right(self._starts, address) - 1
        return self._lows[region] + address - self._starts[region]


_logs: weakref.WeakKeyDictionary[Session, Log] = weakref.WeakKeyDictionary()


@request("dvm/memoryView", needs=Needs.AGENT)
async def memory_view(session: Session, arguments: Body) -> Body:
    """Curves and the largest buffers of `from` to `to` (counts of instructions run; default: all). `fresh`: read the log anew.

    With `select`, a buffer's id: also what it was made of, who reads it, and who had its memory before and after."""
    log = _logs.get(session)
    if log is None or arguments.get("fresh"):
        session.watches.memory_wanted = True
        log = _logs[session] = await asyncio.to_thread(Log.of, await session.tensors.ask("memory"))
    first, last = _range(log, arguments)
    told = await asyncio.to_thread(view, log, first, last)
    if arguments.get("select") is not None:
        told["selected"] = await _selected(session, log, arguments["select"])
    return told


def _range(log: Log, arguments: Body) -> tuple[int, int]:
    start, end = _whole(log)
    bounds = []
    for name, default in (("from", start), ("to", end)):
        bounds.append(min(max(int(arguments.get(name, default)), start), end))
    first, last = bounds
    return (first, last) if last > first else (start, end)


def _whole(log: Log) -> tuple[int, int]:
    start = log.buffers[0].born if log.buffers else 0
    return start, max((max(b.born, b.freed or 0) for b in log.buffers), default=start) + 1


def view(log: Log, first: int, last: int) -> Body:
    """The answer, but for what is selected."""
    inside = [b for b in log.buffers if b.born < last and (b.freed is None or b.freed > first)]
    curves = timeline(inside, MOST_POINTS, first, last)
    at = curves.times[curves.peak] if curves.times else first
    alive = sorted((b for b in inside if b.alive_at(at)), key=lambda b: -b.bytes)
    least = (last - first) / _THIN
    largest = sorted(inside, key=lambda b: -b.bytes * max(least, min(last, last if b.freed is None else b.freed) - max(first, b.born)))
    return {
        "whole": list(_whole(log)), "range": [first, last], "steps": log.steps,
        "times": curves.times, "classes": list(curves.classes), "bytes": list(curves.classes.values()),
        "peak": {"at": at, "bytes": curves.totals[curves.peak] if curves.totals else 0,
                 "contributors": [_told(log, b) for b in alive[:MOST_CONTRIBUTORS]], "others": max(0, len(alive) - MOST_CONTRIBUTORS),
                 "otherBytes": sum(b.bytes for b in alive[MOST_CONTRIBUTORS:])},
        "height": log.lanes.height, "buffers": [_told(log, b) for b in largest[:MOST_BLOCKS]], "count": len(inside),
        **{name: log.body.get(name, 0) for name in ("step", "copies", "copiesAvoided", "bytesLive", "bytesPeak")},
    }


def _told(log: Log, buffer: Buffer) -> Body:
    entry = log.entries.get(buffer.id, {})
    told = {name: entry.get(name) for name in ("program", "instruction", "place", "inPlaceOf") if entry.get(name) not in (None, -1)}
    return {**told, "id": buffer.id, "name": buffer.name, "class": buffer.cls, "bytes": buffer.bytes, "born": buffer.born,
            "freed": buffer.freed, "address": hex(buffer.address), "low": log.lanes.low(buffer.address), "reuses": buffer.reuses,
            "step": buffer.step, "type": buffer.shape}


async def _selected(session: Session, log: Log, number: Any) -> Body:
    buffer = next((b for b in log.buffers if b.id == number), None)
    if buffer is None:
        raise RequestError(f"there is no buffer {number!r} in the log (the oldest are forgotten)")
    entry = log.entries.get(buffer.id, {})
    low, high = buffer.address, buffer.address + buffer.bytes
    here = [b for b in log.buffers if b.address < high and low < b.address + b.bytes and b is not buffer]
    before = max((b for b in here if b.freed is not None and b.freed <= buffer.born), key=lambda b: b.born, default=None)
    after = min((b for b in here if buffer.freed is not None and b.born >= buffer.freed), key=lambda b: b.born, default=None)
    program, instruction = entry.get("program", 0), entry.get("instruction", -1)
    flow = await session.tensors.ask("memoryFlow", program=program, instruction=instruction) if program and instruction >= 0 else {}
    operands, readers = await asyncio.to_thread(_flow, log, buffer, program, flow)
    return {**_told(log, buffer), "op": flow.get("op", ""), "before": before and _told(log, before), "after": after and _told(log, after),
            "operands": operands, "readers": readers, "reads": len(flow.get("readers", ()))}


def _flow(log: Log, buffer: Buffer, program: int, flow: Body) -> tuple[list[Body], list[Body]]:
    """The buffers of operands and readers in the same launch: the last before it was made, the first from then on."""
    made: dict[int, list[Buffer]] = {}
    for other in log.buffers:
        entry = log.entries.get(other.id, {})
        if entry.get("program") == program and abs(other.step - buffer.step) <= 1:
            made.setdefault(entry.get("instruction", -1), []).append(other)
    before = [[b for b in made.get(index, ()) if b.born <= buffer.born] for index in flow.get("operands", ())]
    after = [[b for b in made.get(index, ()) if b.born >= buffer.born] for index in flow.get("readers", ())]
    return [_told(log, of[-1]) for of in before if of], [_told(log, of[0]) for of in after if of]
