"""A text parsed beside the one in force: of an edit that leaves the number of lines as it was, only the statements it touches."""
from __future__ import annotations

import ast

from dvm_wire import syntax

from .parse import Collector, Source, attach_codes, inner_codes, parse, span


def parse_beside(old: Source, path: str, text: str) -> Source:
    """As `parse`, in less time where the two texts have as many lines: only the statements that the differing lines belong to are parsed
    and compiled, the others are `old`'s, the very objects."""
    return (_beside(old, text) if old.path == path else None) or parse(path, text)


def _beside(old: Source, text: str) -> Source | None:
    """None where part of the text might mean something else by itself."""
    lines = text.split("\n")
    changed = [number for number, (a, b) in enumerate(zip(old.lines, lines, strict=False), 1) if a != b]
    if not changed or len(lines) != len(old.lines):
        return None
    low = sum(end < changed[0] for _, end in old.spans)  # the first statement that is touched, and the first that follows
    high = sum(start <= changed[-1] for start, _ in old.spans)
    while 0 < low < len(old.spans) and old.spans[low][0] <= old.spans[low - 1][1]:  # `a = 1; b = 2`
        low -= 1
    while 0 < high < len(old.spans) and old.spans[high][0] <= old.spans[high - 1][1]:
        high += 1
    if not low:
        return None  # a docstring or a `from __future__` is one by where it stands
    first, last = old.spans[low - 1][1] + 1, old.spans[high][0] - 1 if high < len(old.spans) else len(lines)
    if lines[first - 2].endswith("\\") or lines[last - 1].endswith("\\"):
        return None
    try:  # blank lines before it: everything has its place in the file
        tree = syntax.parse("\n" * (first - 1) + "\n".join(lines[first - 1:last]) + "\n" * (last < len(lines)), old.path)
        collector = Collector()
        nodes, statements = list(tree.body), collector.body(tree.body, None, "")
        if _imports(statements) != _imports(old.statements[low:high]):
            return None
        # Attributes of a name that the module imports are compiled in another way than those of others.
        others = _imports([*old.statements[:low], *old.statements[high:]])
        tree.body += [ast.Import([ast.alias("_", name, lineno=last, col_offset=0)], lineno=last, col_offset=0) for name in others]
        code = compile(tree, old.path, "exec", flags=old.futures, dont_inherit=True)
    except (SyntaxError, ValueError):  # as a whole it may parse, or the message is another
        return None
    above = {key: one for key, one in old.definitions.items() if one.root.first_line < first}
    below = {key: one for key, one in old.definitions.items() if one.root.first_line > last}
    between = old.definitions.keys() - above.keys() - below.keys()
    if {_name(key) for key in (*above, *below)} & {_name(key) for key in (*between, *collector.definitions)}:
        return None  # which of several is `name#2` depends on all of them
    inner = inner_codes(code)
    attach_codes(collector.definitions, inner)
    codes = [[code for code in old.inner if code.co_firstlineno < first], inner, [code for code in old.inner if code.co_firstlineno > last]]
    return Source(old.path, text, {**above, **collector.definitions, **below}, [*old.statements[:low], *statements, *old.statements[high:]],
                  [*old.spans[:low], *map(span, nodes), *old.spans[high:]], sum(codes, []), old.futures)


def _imports(statements: list[ast.stmt]) -> list[str]:
    """Names that imports bind in the module, its conditional ones included."""
    return [alias.asname or alias.name.partition(".")[0] for statement in statements
            if isinstance(statement, (ast.Import, ast.ImportFrom)) or hasattr(statement, "body") or hasattr(statement, "cases")
            for node in ast.walk(statement) if isinstance(node, (ast.Import, ast.ImportFrom)) for alias in node.names if alias.name != "*"]


def _name(key: str) -> str:
    """The module's name for what a definition is in, or is."""
    return key.partition(".")[0].partition("#")[0]
