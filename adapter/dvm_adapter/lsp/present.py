"""What an analysis looks like in an editor: inlay hints, hovers, lenses, symbols, code actions."""
from __future__ import annotations

from typing import Any

from lsprotocol import types as lsp

from .analysis import Analysis, Named
from .recall import Value, duration, indentation, ranges_text, shape_text

_SHARE = 0.1  # of a function's time that a line needs for a lens of its own

_MEASURES = (("min", "min"), ("max", "max"), ("μ", "mean"), ("σ", "std"))  # how they are shown, what they are called
_NOT_FINITE = (("NaN", "nan"), ("+Inf", "pos_inf"), ("-Inf", "neg_inf"))
_ACTIONS = (("Watch {}", "dvm.watch.addAt"), ("Stop when {} is not finite", "dvm.breakOnNotFinite"))


def position(line: int, column: int) -> lsp.Position:
    return lsp.Position(line, column)


def span(line: int, column: int, end_line: int, end_column: int) -> lsp.Range:
    return lsp.Range(position(line, column), position(end_line, end_column))


def whole_line(analysis: Analysis, line: int) -> lsp.Range:
    """A line (from 1) without its indentation."""
    text = analysis.document.lines[line - 1] if 0 < line <= len(analysis.document.lines) else ""
    return span(line - 1, indentation(text), line - 1, len(text.encode("utf-16-le")) // 2)


def range_of(analysis: Analysis, value: Value) -> lsp.Range:
    """A value's expression; its line where the columns are not known."""
    if not 0 < value["column"] < value["endColumn"] and value["line"] == value["endLine"] or not value["column"]:
        return whole_line(analysis, value["line"])
    return span(value["line"] - 1, value["column"] - 1, value["endLine"] - 1, max(0, value["endColumn"] - 1))


def hints(analysis: Analysis, first: int, last: int) -> list[lsp.InlayHint]:
    """Shapes and dtypes behind names, of lines first to last (from 0)."""
    return [
        lsp.InlayHint(position(named.line, named.column), f": {named.text}", kind=lsp.InlayHintKind.Type, padding_right=True,
                      tooltip=_origin(named))
        for named in analysis.named if first <= named.line <= last
    ]


def _origin(named: Named) -> str:
    if named.value is None:
        return "as the source tells; the function has not run yet, or this line is new"
    ranges = ranges_text(named.value)
    return f"in the last run: {ranges}" if ranges else "in the last run, always this shape"


def hover(analysis: Analysis, line: int, column: int) -> lsp.Hover | None:
    """What the last run told of the innermost expression at a position (from 0)."""
    values = analysis.recall.at(line + 1, column + 1)
    if not values:
        return None
    inner = values[0]
    texts = [_described(value) for value in values if _place(value) == _place(inner)]
    gradients = [value for value in values if value["backward"]]
    if gradients and not inner["backward"]:
        texts.append(f"In the backward pass this line runs {_count(len(gradients), 'instruction')}, "
                     f"{duration(sum(v['ns'] for v in gradients))} in the last launch.")
    return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, "\n\n---\n\n".join(texts)),
                     range_of(analysis, inner))


def _place(value: Value) -> tuple[Any, ...]:
    return value["line"], value["column"], value["endLine"], value["endColumn"], value["backward"]


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _described(value: Value) -> str:
    name = f"{value['name']}: " if value["name"] else ""
    lines = [f"**`{name}{shape_text(value)}`** ({value['op']})"]
    if ranges := ranges_text(value):
        lines.append(ranges)
    if value["folded"]:
        lines.append(f"Merged into line {value['folded']}.")
    elif value["areas"]:
        others = [str(line) for line in value["lines"] if line != value["line"]]
        fused = f", fused with line{'s' * (len(others) > 1)} {', '.join(others)}" if others else ""
        lines.append(f"Area {value['area'] + 1} of {value['areas']}{fused}. It ends here: {value['cut']}." if value["cut"] else
                     f"Area {value['area'] + 1} of {value['areas']}{fused}.")
        lines.append(f"About {duration(value['ns'])} of the last launch.")
    if value["stats"]:
        lines.append(_statistics(value["stats"]))
    return "  \n".join(lines)


def _statistics(stats: dict[str, Any]) -> str:
    told = [f"{word} {_number(stats[name])}" for word, name in _MEASURES if name in stats]
    bad = [f"{stats[name]} {word}" for word, name in _NOT_FINITE if stats.get(name)]
    return f"At step {stats.get('step', '?')}: {', '.join([*told, *bad])}."


def _number(number: Any) -> str:
    return f"{number:.3g}" if isinstance(number, (int, float)) else str(number)


def lenses(analysis: Analysis) -> list[lsp.CodeLens]:
    """Over a function what a launch of it took, and over its costly lines their share."""
    made: list[lsp.CodeLens] = []
    for function in analysis.recall.functions:
        captured = analysis.document.function_at(function["line"])
        if captured is None:
            continue
        line = analysis.document.line(captured.node.lineno)
        inside = [v for v in analysis.recall.values if captured.covers(v["line"])]
        made.append(_lens(analysis, line, _function_text(function)))
        times: dict[int, int] = {}
        for value in inside:
            times[value["line"]] = times.get(value["line"], 0) + value["ns"]
        total = sum(times.values())
        made += [_lens(analysis, at, f"{duration(ns)} · {ns / total:.0%}")
                 for at, ns in sorted(times.items()) if len(times) > 1 and total and ns / total >= _SHARE]
    return made


def _function_text(function: dict[str, Any]) -> str:
    told = [f"{duration(1e3 * function.get('us', 0))} a launch", f"{function.get('launches', 0):,} launches in the last run"]
    if function.get("verdict") in ("pays", "does not pay"):
        told.append(f"the VM {function['verdict']}")
    return " · ".join(told)


def _lens(analysis: Analysis, line: int, title: str) -> lsp.CodeLens:
    return lsp.CodeLens(whole_line(analysis, line), lsp.Command(title, "dvm.programs"))


def symbols(analysis: Analysis) -> list[lsp.DocumentSymbol]:
    """Captured functions, and in them the named tensors with their types."""
    made = []
    for captured in analysis.document.captured:
        first, end = analysis.document.line(captured.node.lineno), analysis.document.line(captured.node.end_lineno or 0)
        if not first or not end:
            continue
        inside = [n for n in analysis.named if first <= n.line + 1 <= end and analysis.document.function_at(n.line + 1) is captured]
        whole = lsp.Range(position(first - 1, 0), whole_line(analysis, end).end)
        made.append(lsp.DocumentSymbol(captured.name, lsp.SymbolKind.Function, whole, whole_line(analysis, first), "captured",
                                       children=[_symbol(analysis, named) for named in inside]))
    return made


def _symbol(analysis: Analysis, named: Named) -> lsp.DocumentSymbol:
    line = whole_line(analysis, named.line + 1)
    name = span(named.line, named.column - len(named.name.encode("utf-16-le")) // 2, named.line, named.column)
    return lsp.DocumentSymbol(named.name, lsp.SymbolKind.Variable, line, name, named.text)


def actions(analysis: Analysis, first: int, last: int) -> list[lsp.Command]:
    """Watch a tensor, and stop where it first is not finite: of the names assigned on lines first to last (from 0)."""
    return [
        lsp.Command(form.format(named.name), command, arguments=[analysis.path, named.line + 1, named.name])
        for named in analysis.named if first <= named.line <= last for form, command in _ACTIONS
    ]
