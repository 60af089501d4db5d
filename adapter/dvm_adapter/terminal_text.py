"""What `dvm debug` shows, as lines."""
from __future__ import annotations

import collections
import linecache
import os
import re
from typing import Any

from .client import Message
from .variables import figure

NAME = re.compile(r"[^\W\d]\w*")
OPERANDS = 2  # that are shown where the line names none
LARGEST = 8  # buffers at the peak that are shown one by one
FIGURES = ("min", "max", "mean", "std")
NOT_FINITE = (("nan", "NaN"), ("pos_inf", "+Inf"), ("neg_inf", "−Inf"))


def reason_of(stop: Message) -> str:
    """Why the program stands: the words of the stop, and which breakpoint it was."""
    words = str(stop.get("description") or f"Paused on {stop.get('reason')}")
    if stop.get("reason") == "exception" and not words.startswith("Paused"):  # debugpy's: what the exception says, and its type
        return f"Paused on {stop.get('text') or 'an exception'}: {' '.join(words.split())}"
    if ids := stop.get("hitBreakpointIds"):
        numbers = ", ".join(map(str, ids))
        words += f" {numbers}" if words.endswith(" breakpoint") else f" (breakpoint {numbers})"
    text = " ".join(str(stop.get("text") or "").split())
    return f"{words}: {text}" if text and text not in words else words


def place_of(frame: Message) -> str:
    source = frame.get("source") or {}
    name = source.get("name") or os.path.basename(str(source.get("path") or ""))
    return f"{name}:{frame.get('line')}" if name else ""


def frame_line(frame: Message, mark: str, number: int | None = None) -> str:
    return f"{mark} {'' if number is None else f'{number:>2} '}{frame['name']:<40} {place_of(frame)}".rstrip()


def source_lines(frame: Message, first: int, last: int) -> list[str]:
    """Lines of the text that the frame runs, the frame's own marked."""
    lines = _text(frame)
    return [f"{'▸' if number == frame['line'] else ' '} {number:>4}  {lines[number - 1].rstrip()}"
            for number in range(max(1, first), min(last, len(lines)) + 1)]


def tensors_of_line(frame: Message, tensors: list[Message]) -> list[Message]:
    """Those whose names the line has; where it has none of them, the operands, which come first."""
    names = set(NAME.findall(_line(frame)))
    return [tensor for tensor in tensors if names.intersection(NAME.findall(tensor["name"]))] or tensors[:OPERANDS]


def named_by_its_line(frame: Message) -> bool:
    """A tensor frame is: its source would say the same again."""
    return bool(_line(frame)) and _line(frame) in frame["name"]


def _line(frame: Message) -> str:
    lines = _text(frame)
    return lines[frame["line"] - 1].strip() if 0 < frame["line"] <= len(lines) else ""


def _text(frame: Message) -> list[str]:
    """That of its file as it is now; of code from before an edit the text that it was made from, which came with it."""
    path = (frame.get("source") or {}).get("path")
    if "text" in frame or not path:
        return list(frame.get("text") or ())
    linecache.checkcache(path)
    return linecache.getlines(path)


def moved(path: str, point: Message) -> str:
    """Where a breakpoint stops whose line has no code."""
    return f"stops at {os.path.basename(path)}:{point['at']}, since line {point['line']} has no code"


def breakpoint_line(path: str, point: Message) -> str:
    words = [f"breakpoint {point['id']} at {os.path.basename(path)}:{point['line']}"]
    if point.get("mode"):
        words.append(f"mode {point['mode']}")
    if point.get("condition"):
        words.append(f"if {point['condition']}")
    if point["once"]:
        words.append("once")
    if point.get("at"):
        words.append(moved(path, point))
    if not point.get("verified"):
        words.append(f"(pending: {point['message']})" if point.get("message") else "(pending)")
    return "  ".join(words)


def watch_line(watch: Message) -> str:
    """The newest snapshot: shape, statistics, what is not finite, the step."""
    every = f" every {watch['every']}" if watch["every"] > 1 else ""
    head = f"{watch['watchId']:>2}  {watch['name']}{every}"
    last: Message | None = watch.get("last")
    if last is None:
        return f"{head}  no value yet"
    dtype = re.sub(r"^(b?f|u|i)(?:loat|int|nt)(\d+)$", r"\1\2", str(last.get("dtype", "")))  # as in the summaries: f32
    shape = f"{dtype}[{','.join(map(str, last.get('shape') or []))}]"
    stats: dict[str, Any] = last.get("stats") or {}
    words = [f"{name} {figure(stats[name])}" for name in FIGURES if name in stats]
    words += [f"{label} {figure(stats[name])}" for name, label in NOT_FINITE if stats.get(name)]
    if stats.get("count") == 1 and stats.get("finite"):
        words = [figure(stats["mean"])]
    if last.get("placeholder"):
        words = [str(last.get("reason") or "shape only")]
    return f"{head}  {shape}  {'  '.join(words)}  step {last.get('step')}"


def program_line(told: Message) -> str:
    place = f"  {os.path.basename(told['file'])}:{told.get('line')}" if told.get("file") else ""
    backward = " (backward)" if told.get("backward") else ""
    what = f"{counted(told, 'instructions')} in {counted(told, 'areas')}, {counted(told, 'launches')}"
    return f"{told['id']:>4}  {told['name']}{backward}  {what}{place}"


def counted(told: Message, name: str) -> str:
    """`1 area`, `3 areas`: an entry of the answer with its name."""
    singular = name.removesuffix("es") if name == "launches" else name.removesuffix("s")
    return f"{told.get(name)} {singular if told.get(name) == 1 else name}"


def memory_lines(told: Message) -> list[str]:
    buffers = told.get("buffers") or []
    count = len(buffers) + (told.get("leftOut") or 0)
    lines = [f"step {told.get('step')}: peak {size((told.get('peak') or {}).get('bytes') or 0)}, {count:,} buffers in the log, "
             f"{told.get('copies')} copies, {told.get('copiesAvoided')} avoided"]
    at = (told.get("peak") or {}).get("at")
    alive = [one for one in buffers if at is not None and one["born"] <= at and (one.get("freed") is None or one["freed"] > at)]
    alike = collections.Counter(map(_buffer, alive))
    largest = sorted(alike.items(), key=lambda entry: -entry[0][0])
    if largest:
        lines.append(f"alive at the peak, {len(alive):,} buffers:")
    for (count, text), times in largest[:LARGEST]:
        lines.append(f"  {size(count):>10}  {text}{f'  {times:,} times' if times > 1 else ''}")
    if rest := largest[LARGEST:]:
        lines.append(f"  {size(sum(count * times for (count, _), times in rest)):>10}  in {sum(times for _, times in rest):,} more")
    return lines


def _buffer(told: Message) -> tuple[int, str]:
    """Its bytes, what it is, and where it was made."""
    place = told.get("place") or {}
    made = f"{os.path.basename(place['path'])}:{place.get('line')}" if place.get("path") else "made by no line of the program"
    return told.get("bytes") or 0, f"{told.get('name') or told.get('class') or 'unnamed'}  {made}"


def size(count: int) -> str:
    """Bytes for people."""
    amount, units = float(count), ["B", "KiB", "MiB", "GiB", "TiB"]
    while amount >= 1024 and len(units) > 1:
        amount, units = amount / 1024, units[1:]
    return f"{amount:.0f} B" if units[0] == "B" else f"{amount:.3g} {units[0]}"
