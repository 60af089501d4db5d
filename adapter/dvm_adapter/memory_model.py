"""A `dvm/memory` body as curves: what is alive when, per class, and what makes the peak."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

# Bottom of the stack first: what lives longest.
CLASSES = ("parameter", "optimizer", "gradient", "activation", "workspace", "snapshot")
OTHER = "other"


@dataclass(eq=False, slots=True)
class Buffer:
    """One buffer of the log. Times are counts of instructions run, and nanoseconds (-1: not known); freed is None while it lives."""

    id: int
    name: str
    cls: str
    bytes: int
    born: int
    freed: int | None
    address: int
    reuses: int
    step: int
    shape: str
    place: str
    born_ns: int = -1
    freed_ns: int = -1
    in_place_of: int = -1  # id of the buffer whose bytes it took over

    def alive_at(self, time: int) -> bool:
        return self.born <= time and (self.freed is None or time < self.freed)


@dataclass
class Timeline:
    """Stacked curves: at times[i] and until times[i + 1], classes[c][i] bytes of class c are alive."""

    buffers: list[Buffer]
    times: list[int] = field(default_factory=list)
    classes: dict[str, list[int]] = field(default_factory=dict)
    totals: list[int] = field(default_factory=list)
    end: int = 0
    peak: int = 0  # index into times

    @property
    def start(self) -> int:
        return self.times[0] if self.times else 0


def _whole(value: Any, default: int = 0) -> int:
    if type(value) is int:
        return value
    if isinstance(value, str):
        try:
            return int(value, 0)
        except ValueError:
            return default
    return int(value) if isinstance(value, (int, float)) and value == value else default


def _place(value: Any) -> str:
    if isinstance(value, dict):
        path, line = value.get("path") or value.get("file"), value.get("line")
        return f"{str(path).replace(chr(92), '/').rpartition('/')[2]}:{line}" if path else ""
    return str(value) if isinstance(value, str) else ""


def read_buffers(body: dict[str, Any]) -> list[Buffer]:
    """The body's buffers, oldest first; entries without a size are left out."""
    found = []
    for entry in body.get("buffers") or []:
        size = _whole(entry.get("bytes"))
        if size <= 0:
            continue
        freed = entry.get("freed")
        shape = entry.get("shape")
        label = f"{entry.get('dtype', '')}[{','.join(map(str, shape))}]" if isinstance(shape, (list, tuple)) else ""
        cls = str(entry.get("class") or entry.get("cls") or OTHER)
        found.append(Buffer(
            id=_whole(entry.get("id")), name=str(entry.get("name") or f"%{entry.get('id')}"), cls=cls if cls in CLASSES else OTHER,
            bytes=size, born=_whole(entry.get("born")), freed=None if freed is None or _whole(freed, -1) < 0 else _whole(freed),
            address=_whole(entry.get("address")), reuses=_whole(entry.get("reuses", entry.get("reuse"))), step=_whole(entry.get("step")),
            shape=label, place=_place(entry.get("place")), born_ns=_whole(entry.get("bornNs"), -1),
            freed_ns=_whole(entry.get("freedNs"), -1), in_place_of=_whole(entry.get("inPlaceOf"), -1)))
    return sorted(found, key=lambda buffer: (buffer.born, buffer.id))


def timeline(buffers: list[Buffer], points: int = 1500, first: int | None = None, end: int | None = None) -> Timeline:
    """Curves, thinned to at most `points` columns; of each column the highest moment is kept, so the peak is exact.

    first, end: the stretch looked at, default all of the log: what was born before begins there, what is freed later does not end."""
    present = {buffer.cls for buffer in buffers}
    names = [name for name in (*CLASSES, OTHER) if name in present]
    index = {name: i for i, name in enumerate(names)}
    changes: list[tuple[int, int, int]] = []  # moment, class, bytes
    for buffer in buffers:
        born, freed, of = buffer.born, buffer.freed, index[buffer.cls]
        changes.append((born if first is None or born > first else first, of, buffer.bytes))
        if freed is not None and (end is None or freed < end):
            changes.append((freed, of, -buffer.bytes))
    changes.sort()
    moments = len({moment for moment, _, _ in changes})
    width = max(1, -(-moments // points))
    times, totals, columns = [], [], []
    now, total, seen, best = [0] * len(names), 0, 0, -1
    for i, (moment, of, change) in enumerate(changes):
        now[of] += change
        total += change
        if i + 1 < len(changes) and changes[i + 1][0] == moment:
            continue
        if seen % width == 0:
            times.append(moment)
            totals.append(best := total)
            columns.append(now.copy())
        elif total > best:
            times[-1], totals[-1], columns[-1] = moment, (best := total), now.copy()
        seen += 1
    classes = {name: [column[i] for column in columns] for i, name in enumerate(names)}
    peak = max(range(len(totals)), key=totals.__getitem__) if totals else 0
    return Timeline(buffers, times, classes, totals, (changes[-1][0] if changes else 0) + 1, peak)
