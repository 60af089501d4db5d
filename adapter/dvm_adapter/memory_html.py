"""The memory timeline as one HTML file: SVG and a table, light and dark, nothing loaded from anywhere."""
from __future__ import annotations

import json
from html import escape
from typing import Any

from .memory_model import CLASSES, OTHER, Buffer, Timeline, read_buffers, timeline

WIDTH, HEIGHT = 1120, 320
LEFT, RIGHT, TOP, BOTTOM = 78, 12, 30, 34
ROW = 15
LIFELINES = 24
TABLE_ROWS = 400

# class -> (light, dark, plural); each has its word in the legend and, where it is tall enough, in its band
_LOOK = {
    "parameter": ("#3b6fb5", "#6d9fe0", "parameters"),
    "optimizer": ("#8a5aa8", "#b98bd6", "optimizer"),
    "gradient": ("#c8504a", "#e8827b", "gradients"),
    "activation": ("#4b9154", "#7cc085", "activations"),
    "workspace": ("#8b7d6b", "#b5a896", "workspace"),
    "snapshot": ("#c79a1e", "#e6c04d", "snapshots"),
    OTHER: ("#6f7782", "#99a1ac", "other"),
}


def size(count: float) -> str:
    """Bytes with three significant digits."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024 or unit == "GiB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.3g} {unit}" if count < 1000 else f"{count:,.0f} {unit}"
        count /= 1024
    raise AssertionError


def _nice_ticks(top: float, most: int = 6) -> list[float]:
    """Round byte values from 0 up to `top`: powers of two times 1, 2 or 4, so that labels stay short."""
    step = 1.0
    while top / step > most:
        step *= 2
    return [i * step for i in range(int(top / step) + 1)]


class _Scale:
    def __init__(self, line: Timeline) -> None:
        self.first, self.last = line.start, max(line.end, line.start + 1)
        self.top = max(line.totals, default=1) * 1.08

    def x(self, time: float) -> float:
        return LEFT + (time - self.first) / (self.last - self.first) * (WIDTH - LEFT - RIGHT)

    def y(self, count: float) -> float:
        return HEIGHT - BOTTOM - count / self.top * (HEIGHT - TOP - BOTTOM)


def render(body: dict[str, Any], title: str = "") -> str:
    """The page for a `dvm/memory` body."""
    buffers = read_buffers(body)
    line = timeline(buffers)
    scale = _Scale(line)
    title = title or "Memory"
    parts = [_head(title), f"<h1>{escape(title)}</h1>", _facts(body, line)]
    if not buffers:
        parts.append('<p class="empty">No buffers were recorded. The log starts with the first request for the memory view: '
                     "run some steps, then look again.</p>")
    else:
        parts += [_legend(line), '<figure id="chart">', _chart(line, scale, body), "<p id=readout aria-live=polite></p></figure>",
                  "<h2>Alive at the peak</h2>", _peak_table(line), "<h2>Lives of the largest buffers</h2>", _lives(line, scale),
                  _all_table(buffers), _script(line, scale)]
    return "\n".join(parts) + "\n</main></body></html>\n"


def _head(title: str) -> str:
    light = "".join(f"--{name}:{look[0]};" for name, look in _LOOK.items())
    dark = "".join(f"--{name}:{look[1]};" for name, look in _LOOK.items())
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{escape(title)}</title>
<style>
:root{{color-scheme:light dark;--ground:#fff;--ink:#1d2127;--soft:#5d6672;--rule:#d9dde3;--row:#f5f6f8;--mark:#1d2127;{light}}}
@media(prefers-color-scheme:dark){{:root{{--ground:#1b1e23;--ink:#e3e6ea;--soft:#9aa3ae;--rule:#363b43;--row:#22262c;--mark:#fff;{dark}}}}}
body{{margin:0;background:var(--ground);color:var(--ink);font:14px/1.45 system-ui,sans-serif}}
main{{max-width:{WIDTH}px;margin:0 auto;padding:20px 24px 48px}}
h1{{font-size:20px;font-weight:600;margin:0 0 10px}} h2{{font-size:15px;font-weight:600;margin:28px 0 8px}}
.facts{{display:flex;flex-wrap:wrap;gap:6px 36px;margin:0 0 14px}} .facts div{{min-width:90px}}
.facts dt{{color:var(--soft);font-size:12px}} .facts dd{{margin:0;font-size:17px;font-variant-numeric:tabular-nums}}
.facts dd small{{font-size:12px;color:var(--soft)}}
.legend{{display:flex;flex-wrap:wrap;gap:4px 20px;margin:0 0 6px;padding:0;list-style:none;font-size:13px}}
.legend i{{display:inline-block;width:11px;height:11px;border-radius:2px;margin-right:6px}} .legend small{{color:var(--soft)}}
figure{{margin:0;position:relative}} svg{{display:block;width:100%;height:auto;overflow:visible}}
svg text{{fill:var(--soft);font-size:11px;font-variant-numeric:tabular-nums;
paint-order:stroke;stroke:var(--ground);stroke-width:3px}}
svg .strong{{fill:var(--ink);font-weight:600}}
svg .band{{fill:#fff;font-weight:600;pointer-events:none;stroke:none}}
.rule{{stroke:var(--rule)}} .step{{stroke:var(--rule);stroke-dasharray:2 3}}
.peak{{stroke:var(--mark);stroke-width:1.2;stroke-dasharray:4 3}} #cursor{{stroke:var(--ink);opacity:.5;visibility:hidden}}
#readout{{min-height:20px;margin:2px 0 0 {LEFT}px;font-size:13px;font-variant-numeric:tabular-nums}} #readout small{{color:var(--soft)}}
table{{border-collapse:collapse;width:100%;font-size:13px;font-variant-numeric:tabular-nums}}
th{{text-align:left;font-weight:500;color:var(--soft);font-size:12px}} th,td{{padding:3px 10px 3px 0;border-bottom:1px solid var(--rule)}}
tbody tr:hover{{background:var(--row)}} .n{{text-align:right}}
td i{{display:inline-block;width:9px;height:9px;border-radius:2px;margin-right:6px}}
td code{{font:12px ui-monospace,monospace}} .bar{{display:inline-block;height:9px;border-radius:2px;vertical-align:middle}}
summary{{cursor:pointer;margin:28px 0 8px;font-size:15px;font-weight:600}} .empty{{color:var(--soft)}} .wide{{overflow-x:auto}}
@media(prefers-color-scheme:dark){{svg .band{{fill:#14171b}}}}
</style></head><body><main>"""


def _facts(body: dict[str, Any], line: Timeline) -> str:
    steps = [buffer.step for buffer in line.buffers if buffer.step]
    first, last = (min(steps), max(steps)) if steps else (body.get("step"), body.get("step"))
    told = body.get("peak") or {}
    peak = line.totals[line.peak] if line.totals else 0
    place = _peak_place(told, line)
    facts = [("steps" if first != last else "step", f"{first:,} – {last:,}" if first != last and first is not None else f"{last or 0:,}"),
             ("peak", f"{size(peak)} <small>{escape(place)}</small>"),
             ("alive at the end", size(sum(b.bytes for b in line.buffers if b.freed is None))),
             ("buffers", f"{len(line.buffers):,}"),
             ("copies", _count(body.get("copies"))), ("copies avoided", _count(body.get("copiesAvoided")))]
    return '<dl class="facts">' + "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts if value) + "</dl>"


def _count(value: Any) -> str:
    if isinstance(value, dict):
        value = value.get("count", value.get("bytes"))
    return f"{value:,}" if isinstance(value, int) else ""


def _peak_place(told: dict[str, Any], line: Timeline) -> str:
    place = told.get("place")
    if isinstance(place, dict) and place.get("path"):
        return f"at {str(place['path']).rpartition('/')[2]}:{place.get('line')}"
    if isinstance(place, str) and place:
        return f"at {place}"
    born = [buffer.place for buffer in line.buffers if line.times and buffer.born == line.times[line.peak] and buffer.place]
    return f"at {born[0]}" if born else ""


def _legend(line: Timeline) -> str:
    items = []
    for name in reversed(list(line.classes)):
        at_peak = line.classes[name][line.peak]
        items.append(f'<li><i style="background:var(--{name})"></i>{_LOOK[name][2]} <small>{size(at_peak)} at the peak</small></li>')
    return '<ul class="legend">' + "".join(items) + "</ul>"


def _chart(line: Timeline, scale: _Scale, body: dict[str, Any]) -> str:
    """Stacked areas: memory changes at instants, so the curves are stairs."""
    out = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="bytes alive over time, by class">']
    for tick in _nice_ticks(scale.top):
        y = scale.y(tick)
        out.append(f'<line class="rule" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
                   f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{size(tick)}</text>')
    below = [0] * len(line.times)
    edges = [scale.x(time) for time in line.times] + [scale.x(line.end)]
    for name, amounts in line.classes.items():
        above = [a + b for a, b in zip(below, amounts)]  # noqa: B905
        path = _stairs(edges, [scale.y(v) for v in above]) + "L" + _stairs(edges, [scale.y(v) for v in below], back=True)[1:] + "Z"
        out.append(f'<path d="{path}" fill="var(--{name})"><title>{_LOOK[name][2]}</title></path>')
        out.append(_band_label(name, edges, below, above, scale))
        below = above
    out.append(_step_marks(line, scale))
    out.append(_peak_mark(line, scale, body))
    out.append(f'<line id="cursor" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
    out.append(f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 4}" text-anchor="end">time, in instructions run</text></svg>')
    return "".join(out)


def _stairs(edges: list[float], ys: list[float], back: bool = False) -> str:
    points = []
    for i, y in enumerate(ys):
        points += [f"{edges[i]:.1f},{y:.1f}", f"{edges[i + 1]:.1f},{y:.1f}"]
    if back:
        points.reverse()
    return "M" + "L".join(points)


def _band_label(name: str, edges: list[float], below: list[int], above: list[int], scale: _Scale) -> str:
    """The class's word inside its band, where a stretch is tall and wide enough to hold it."""
    need = 7.0 * len(_LOOK[name][2])
    best = (0.0, 0.0, 0.0)
    i = 0
    while i < len(above):
        top, bottom = scale.y(above[i]), scale.y(below[i])
        j = i
        while j < len(above) and bottom - top >= 18:
            new_top, new_bottom = max(top, scale.y(above[j])), min(bottom, scale.y(below[j]))
            if new_bottom - new_top < 18:
                break
            top, bottom, j = new_top, new_bottom, j + 1
        if j > i and edges[j] - edges[i] > max(need, best[0]):
            best = (edges[j] - edges[i], (edges[i] + edges[j]) / 2, (top + bottom) / 2)
        i = max(j, i + 1)
    if not best[0]:
        return ""
    return f'<text class="band" x="{best[1]:.1f}" y="{best[2] + 4:.1f}" text-anchor="middle">{_LOOK[name][2]}</text>'


def _step_marks(line: Timeline, scale: _Scale) -> str:
    """A thin line where each step begins; numbers as long as they do not touch."""
    first: dict[int, int] = {}
    for buffer in line.buffers:
        if buffer.step:
            first.setdefault(buffer.step, buffer.born)
    out: list[str] = []
    free = float(LEFT) - 1
    for step, born in sorted(first.items()):
        x = scale.x(born)
        if x - free < 0 and out:
            continue
        if len(first) > 1:
            out.append(f'<line class="step" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM + 4}"/>')
        if x + 58 < WIDTH:
            out.append(f'<text x="{x + 2:.1f}" y="{HEIGHT - BOTTOM + 14}">step {step:,}</text>')
        free = x + 58
    return "".join(out)


def _peak_mark(line: Timeline, scale: _Scale, body: dict[str, Any]) -> str:
    x, y = scale.x(line.times[line.peak]), scale.y(line.totals[line.peak])
    text = f"peak {size(line.totals[line.peak])}  {_peak_place(body.get('peak') or {}, line)}".strip()
    anchor, dx = ("end", -6) if x > WIDTH * 0.6 else ("start", 6)
    return (f'<line class="peak" x1="{x:.1f}" x2="{x:.1f}" y1="14" y2="{HEIGHT - BOTTOM}"/><circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" '
            f'fill="var(--mark)"/><text class="strong" x="{x + dx:.1f}" y="20" text-anchor="{anchor}">{escape(text)}</text>')


def _peak_table(line: Timeline, most: int = 12) -> str:
    time, total = line.times[line.peak], max(1, line.totals[line.peak])
    alive = sorted((b for b in line.buffers if b.alive_at(time)), key=lambda b: -b.bytes)
    largest = alive[0].bytes if alive else 1
    rows = []
    for buffer in alive[:most]:
        bar = f'<span class="bar" style="width:{buffer.bytes / largest * 120:.0f}px;background:var(--{buffer.cls})"></span>'
        rows.append(f"<tr><td>{_named(buffer)}</td><td>{_LOOK[buffer.cls][2]}</td><td class=n>{size(buffer.bytes)}</td>"
                    f"<td class=n>{buffer.bytes / total:.1%}</td><td>{bar}</td><td>{escape(buffer.place)}</td></tr>")
    rest = alive[most:]
    if rest:
        amount = sum(buffer.bytes for buffer in rest)
        rows.append(f"<tr><td>{len(rest):,} more</td><td></td><td class=n>{size(amount)}</td><td class=n>{amount / total:.1%}</td>"
                    "<td></td><td></td></tr>")
    head = "<th>buffer<th>class<th class=n>size<th class=n>of the peak<th><th>made at"
    return _table(head, rows)


def _table(head: str, rows: list[str]) -> str:
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'


def _named(buffer: Buffer) -> str:
    shape = f" <code>{escape(buffer.shape)}</code>" if buffer.shape else ""
    return f'<i style="background:var(--{buffer.cls})"></i>{escape(buffer.name)}{shape}'


def _lives(line: Timeline, scale: _Scale) -> str:
    """One bar per buffer on the chart's own time axis; a bar that reaches the right edge is still alive."""
    largest = sorted(sorted(line.buffers, key=lambda b: -b.bytes)[:LIFELINES], key=lambda b: (b.born, b.id))
    height = len(largest) * ROW + 8
    x_peak = scale.x(line.times[line.peak])
    out = [f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="when each of the largest buffers is alive">'
           f'<line class="peak" x1="{x_peak:.1f}" x2="{x_peak:.1f}" y1="0" y2="{height}"/>']
    for i, buffer in enumerate(largest):
        y = i * ROW + 2
        x0, x1 = scale.x(buffer.born), scale.x(line.end if buffer.freed is None else buffer.freed)
        width = max(x1 - x0, 1.5)
        label = f"{buffer.name}  {size(buffer.bytes)}"
        room = 6.6 * len(label)
        out.append(f'<rect x="{x0:.1f}" y="{y}" width="{width:.1f}" height="{ROW - 4}" rx="2" fill="var(--{buffer.cls})"><title>'
                   f'{escape(_story(buffer))}</title></rect>')
        if width > room + 8:
            out.append(f'<text class="band" x="{x0 + 5:.1f}" y="{y + 9}">{escape(label)}</text>')
        elif x1 + room + 8 < WIDTH:
            out.append(f'<text x="{x1 + 5:.1f}" y="{y + 9}">{escape(label)}</text>')
        else:
            out.append(f'<text x="{x0 - 5:.1f}" y="{y + 9}" text-anchor="end">{escape(label)}</text>')
    return "".join(out) + "</svg>"


def _story(buffer: Buffer) -> str:
    end = "still alive" if buffer.freed is None else f"freed {buffer.freed:,}"
    again = f", address handed out {buffer.reuses} times before" if buffer.reuses else ""
    return (f"{buffer.name} {buffer.shape} {size(buffer.bytes)}, {buffer.cls}, born {buffer.born:,}, {end} {buffer.place} "
            f"{buffer.address:#x}{again}")


def _all_table(buffers: list[Buffer]) -> str:
    shown = sorted(buffers, key=lambda b: -b.bytes)[:TABLE_ROWS]
    rows = [f"<tr><td>{_named(b)}</td><td>{_LOOK[b.cls][2]}</td><td class=n>{b.bytes:,}</td><td class=n>{b.born:,}</td>"
            f"<td class=n>{'alive' if b.freed is None else format(b.freed, ',')}</td><td class=n>{b.step or ''}</td>"
            f"<td><code>{b.address:#x}</code></td><td class=n>{b.reuses or ''}</td><td>{escape(b.place)}</td></tr>" for b in shown]
    more = f" (the {TABLE_ROWS} largest of {len(buffers):,})" if len(buffers) > TABLE_ROWS else f" ({len(buffers):,})"
    head = ("<th>buffer<th>class<th class=n>bytes<th class=n>born<th class=n>freed<th class=n>step<th>address<th class=n>reused"
            "<th>made at")
    return f"<details><summary>All buffers{more}</summary>{_table(head, rows)}</details>"


def _script(line: Timeline, scale: _Scale) -> str:
    """The readout under the chart; without scripts the page only loses that."""
    data = {"t": line.times, "end": line.end, "c": {_LOOK[name][2]: values for name, values in line.classes.items()},
            "x0": LEFT, "x1": WIDTH - RIGHT, "w": WIDTH, "a": scale.first, "b": scale.last}
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    return """<script>
(() => { const d = """ + text + """, box = document.getElementById("chart"), svg = box.querySelector("svg"),
  cursor = document.getElementById("cursor"), out = document.getElementById("readout");
const size = n => { for (const u of ["B", "KiB", "MiB", "GiB"]) {
  if (n < 1024 || u === "GiB") return (u === "B" ? n : n.toPrecision(3)) + " " + u; n /= 1024 } };
svg.addEventListener("mousemove", e => { const r = svg.getBoundingClientRect(), x = (e.clientX - r.left) / r.width * d.w;
  const t = d.a + (x - d.x0) / (d.x1 - d.x0) * (d.b - d.a); let i = -1, hi = d.t.length - 1, lo = 0;
  while (lo <= hi) { const m = (lo + hi) >> 1; if (d.t[m] <= t) { i = m; lo = m + 1 } else hi = m - 1 }
  if (i < 0 || x > d.x1) return; cursor.setAttribute("x1", x); cursor.setAttribute("x2", x); cursor.style.visibility = "visible";
  let sum = 0; const parts = []; for (const k in d.c) { const n = d.c[k][i]; sum += n; if (n) parts.unshift(k + " " + size(n)) }
  out.textContent = size(sum) + " at " + Math.round(t).toLocaleString("en") + ": " + parts.join(", ") });
svg.addEventListener("mouseleave", () => { cursor.style.visibility = "hidden"; out.textContent = "" });
})();
</script>"""


__all__ = ["CLASSES", "render", "size"]
