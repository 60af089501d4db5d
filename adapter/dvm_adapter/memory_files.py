"""The memory log in the formats of PyTorch's memory viewer and of Perfetto."""
from __future__ import annotations

import json
import pickle
from collections.abc import Iterator

from .channel import Message
from .memory_model import CLASSES, OTHER, Buffer

_PAGE = 4096  # buffers that lie no further apart are drawn as one piece of memory


# ---- Perfetto ---------------------------------------------------------------------------------------------------------------------------

def perfetto(buffers: list[Buffer]) -> bytes:
    """Chrome trace JSON: a track per address with the buffers that had it one after the other, an arrow from each to the next one, and a
    counter per class. Microseconds since the first buffer, where times are known; else an instruction is a microsecond."""
    timed = all(buffer.born_ns >= 0 and (buffer.freed is None or buffer.freed_ns >= 0) for buffer in buffers)
    start = min((buffer.born_ns if timed else buffer.born for buffer in buffers), default=0)

    def moment(count: int, ns: int) -> float:
        # Fixed decimals from a small number on: neither exponents nor more digits than a double holds.
        return round((ns - start) / 1000, 3) if timed else float(count - start)

    births = {buffer.id: moment(buffer.born, buffer.born_ns) for buffer in buffers}
    deaths = {buffer.id: moment(buffer.freed, buffer.freed_ns) for buffer in buffers if buffer.freed is not None}
    end = max((*births.values(), *deaths.values()), default=0.0) + 1
    events: list[Message] = [{"ph": "M", "pid": 1, "tid": 0, "name": "process_name", "args": {"name": "tensor memory"}}]
    for track, (address, had) in enumerate(sorted(_by_address(buffers).items()), 1):
        events.append({"ph": "M", "pid": 1, "tid": track, "name": "thread_name", "args": {"name": hex(address)}})
        events.append({"ph": "M", "pid": 1, "tid": track, "name": "thread_sort_index", "args": {"sort_index": track}})
        for i, buffer in enumerate(had):
            born, dead = births[buffer.id], deaths.get(buffer.id, end)
            following = had[i + 1] if i + 1 < len(had) else None
            if following is not None:
                dead = min(dead, births[following.id])  # slices of one track must not overlap
            dead = max(born, dead)
            about = {"class": buffer.cls, "bytes": buffer.bytes, "type": buffer.shape, "made at": buffer.place, "step": buffer.step,
                     "instruction": buffer.born, "handed out before": buffer.reuses}
            if buffer.in_place_of >= 0:
                about["in place of"] = buffer.in_place_of
            events.append({"ph": "X", "pid": 1, "tid": track, "cat": buffer.cls, "name": buffer.name, "ts": born,
                           "dur": round(dead - born, 3), "args": about})
            if following is not None:
                arrow = {"pid": 1, "tid": track, "cat": "reuse", "name": "reuse", "id": buffer.id}
                events.append({"ph": "s", "ts": born, **arrow})
                events.append({"ph": "f", "bp": "e", "ts": births[following.id], **arrow})
    events.extend(_counters(buffers, births, deaths))
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}, separators=(",", ":"), allow_nan=False).encode()


def _by_address(buffers: list[Buffer]) -> dict[int, list[Buffer]]:
    found: dict[int, list[Buffer]] = {}
    for buffer in buffers:
        found.setdefault(buffer.address, []).append(buffer)
    return found


def _counters(buffers: list[Buffer], births: dict[int, float], deaths: dict[int, float]) -> Iterator[Message]:
    """Bytes alive, by class and in all."""
    changes: list[tuple[float, str, int]] = [(births[b.id], b.cls, b.bytes) for b in buffers]
    changes += [(deaths[b.id], b.cls, -b.bytes) for b in buffers if b.id in deaths]
    changes.sort(key=lambda change: (change[0], change[2]))
    alive = {cls: 0 for cls in (*CLASSES, OTHER) if any(b.cls == cls for b in buffers)}
    for i, (at, cls, change) in enumerate(changes):
        alive[cls] += change
        if i + 1 == len(changes) or changes[i + 1][0] != at:
            yield {"ph": "C", "pid": 1, "tid": 0, "name": "bytes alive", "ts": at, "args": dict(alive)}
            yield {"ph": "C", "pid": 1, "tid": 0, "name": "bytes alive in all", "ts": at, "args": {"bytes": sum(alive.values())}}


# ---- PyTorch ----------------------------------------------------------------------------------------------------------------------------

def torch_snapshot(buffers: list[Buffer]) -> bytes:
    """What pytorch.org/memory_viz opens: plain containers in pickle protocol 4 (the viewer knows 2 to 4 and no classes). Its segments are
    the pieces of memory that the buffers lie in, its categories our classes, its microseconds instructions."""
    trace: list[tuple[int, int, int, Message]] = []
    for number, buffer in enumerate(buffers):
        common = {"addr": buffer.address, "size": buffer.bytes, "stream": 0, "frames": _frames(buffer), "category": buffer.cls}
        trace.append((buffer.born, 1, number, {"action": "alloc", **common, "time_us": buffer.born}))
        if buffer.freed is not None:
            # Frees come first within an instant: the address may be handed out again at once. What lives for none is freed as it comes.
            order = 0 if buffer.freed > buffer.born else 1
            for action in ("free_requested", "free_completed"):
                trace.append((buffer.freed, order, number, {"action": action, **common, "time_us": buffer.freed}))
    trace.sort(key=lambda entry: entry[:3])
    segments = [_segment(low, high, [b for b in inside if b.freed is None]) for low, high, inside in _pieces(buffers)]
    return pickle.dumps({"segments": segments, "device_traces": [[entry for *_, entry in trace]], "allocator_settings": {}}, protocol=4)


def _frames(buffer: Buffer) -> list[Message]:
    file, _, number = buffer.place.rpartition(":")
    name = f"{buffer.cls} {buffer.name} {buffer.shape}".rstrip()
    return [{"filename": file or "?", "line": int(number) if number.isdigit() else 0, "name": name}]


def _pieces(buffers: list[Buffer]) -> Iterator[tuple[int, int, list[Buffer]]]:
    """(first address, end, buffers by address) of memory without gaps."""
    inside: list[Buffer] = []
    low = high = 0
    for buffer in sorted(buffers, key=lambda b: (b.address, b.born)):
        if inside and buffer.address > high + _PAGE:
            yield low, high, inside
            inside = []
        if not inside:
            low = high = buffer.address
        inside.append(buffer)
        high = max(high, buffer.address + buffer.bytes)
    if inside:
        yield low, high, inside


def _segment(low: int, high: int, alive: list[Buffer]) -> Message:
    """A piece as the viewer's allocator had it: blocks side by side, those in use and what lies between."""
    blocks: list[Message] = []
    at = low
    for buffer in alive:
        if buffer.address < at:  # a view of what has just been listed
            continue
        if buffer.address > at:
            blocks.append(_gap(at, buffer.address))
        blocks.append({"address": buffer.address, "size": buffer.bytes, "requested_size": buffer.bytes, "state": "active_allocated",
                       "frames": _frames(buffer)})
        at = buffer.address + buffer.bytes
    if at < high:
        blocks.append(_gap(at, high))
    used = sum(block["size"] for block in blocks if block["state"] == "active_allocated")
    return {"device": 0, "address": low, "total_size": high - low, "allocated_size": used, "active_size": used, "requested_size": used,
            "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False, "frames": [], "blocks": blocks}


def _gap(low: int, high: int) -> Message:
    return {"address": low, "size": high - low, "requested_size": 0, "state": "inactive", "frames": []}
