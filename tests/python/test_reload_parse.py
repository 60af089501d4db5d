"""A text parsed beside another is what it is parsed by itself, whatever the edit."""
import ast
import inspect
import random

import pytest

from dvm_core.hotreload import apply, classify, parse, plan, reloader
from dvm_core.hotreload import parse_beside as beside
from dvm_core.hotreload.parse import all_codes

MODULES = (parse, classify, plan, reloader, apply)
TRAPS = '''"""About."""
from __future__ import annotations
import functools
A, B = 1, 2
C = 1; D = [
    2, 3]
E = 1 + \\
    2 \\

F = "a" \\
    "b"
twice = lambda x: x * 2
pair = (
    lambda x: x)
def f(x: int, y=lambda z: z + 1): return x


@functools.cache
def g(n):
    """Text."""
    def inner(k):
        return [lambda: k + i for i in range(n)]
    return inner


class P:
    rate = 0.5  # \\

    @property
    def value(self):
        return self._value

    @value.setter
    def value(self, value):
        self._value = value


if A:
    def h(): return 1
else:
    def h(): return 2


def g(n):
    return n
try:
    import missing
except ImportError:
    missing = None
s = """
text"""
'''
LINES = ["", "    ", "x = 1", "    x = 1", "else:", "    pass", "@f", "def g(n):", "def new(): return 1", '"""', "(", ")", "\\", "x = 1 \\",
         "# c \\", "from __future__ import division", "lambda: 0", "class P: pass", "return 1", "    return lambda a: a", "+ 2",
         "import os", "\f", "x = 'é🙂'"]


def trees(nodes):
    return [ast.dump(node, include_attributes=True) for node in nodes]


def alike(one, other):
    assert one.text == other.text and one.path == other.path and one.futures == other.futures
    assert one.spans == other.spans and one.inner == other.inner
    assert trees(one.statements) == trees(other.statements)
    assert list(one.definitions) == list(other.definitions)
    for a, b in zip(one.definitions.values(), other.definitions.values(), strict=True):
        assert (a.key, a.first_line, a.name, a.is_class, a.in_function) == (b.key, b.first_line, b.name, b.is_class, b.in_function)
        assert (a.owner and a.owner.key) == (b.owner and b.owner.key)
        assert a.code == b.code
        if a.code:  # equality of code objects looks at their lines, but at a nested one's only where it is a constant
            assert [(c.co_firstlineno, c.co_qualname, list(c.co_positions())) for c in all_codes(a.code)] == [
                (c.co_firstlineno, c.co_qualname, list(c.co_positions())) for c in all_codes(b.code)]
        assert trees([a.node, *a.statements]) == trees([b.node, *b.statements])


def edited(lines, draw):
    lines = list(lines)
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        at = draw.randrange(len(lines))
        kind = draw.randrange(5)
        if kind == 0:
            lines[at] = draw.choice(LINES)
        elif kind == 1:  # another line of the same text, also with its indentation
            lines[at] = draw.choice(lines)
        elif kind == 2:
            lines[at] = lines[at].replace("1", "7").replace("x", "y")
        elif kind == 3:
            line = lines[at]
            cut = draw.randrange(len(line) + 1)
            lines[at] = line[:cut] + draw.choice(["", " ", "#", '"', "(", "\\", ";", ":", "\f"]) + line[cut:]
        else:
            other = draw.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
    return "\n".join(lines)


@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("text", [TRAPS, *map(inspect.getsource, MODULES)], ids=["traps", *(module.__name__ for module in MODULES)])
def test_a_text_parsed_beside_another_is_what_it_is_by_itself(text):
    draw = random.Random(len(text))
    old, parsed, quick = parse.parse("file.py", text), 0, 0
    for _ in range(1500 if text is TRAPS else 60):
        new = edited(old.text.split("\n"), draw)
        try:
            wanted = parse.parse("file.py", new)
        except (SyntaxError, ValueError) as error:
            with pytest.raises(type(error)) as found:
                beside.parse_beside(old, "file.py", new)
            assert str(found.value) == str(error)
            continue
        parsed += 1
        quick += beside._beside(old, new) is not None
        got = beside.parse_beside(old, "file.py", new)
        alike(got, wanted)
        if draw.random() < 0.3:  # edits upon edits
            old = got
        if draw.random() < 0.1:
            old = parse.parse("file.py", text)
    assert parsed > 10 and quick > parsed / 4


def test_what_an_edit_leaves_alone_is_neither_parsed_nor_compiled_again():
    old = parse.parse("file.py", TRAPS)
    new = beside.parse_beside(old, "file.py", TRAPS.replace("rate = 0.5", "rate = 0.7"))
    assert {key for key in new.definitions if new.definitions[key] is not old.definitions[key]} == {"P", "P.value", "P.value#2"}
    assert beside.parse_beside(old, "other.py", TRAPS).path == "other.py"
