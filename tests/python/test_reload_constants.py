"""Constant expressions of a text: which are computed, and that none of them takes long or much memory."""
import ast
import tracemalloc

import pytest

from dvm_core.hotreload.constants import NotConstant, value_of


def node(text):
    return ast.parse(text, mode="eval").body


@pytest.mark.parametrize("text, value", [
    ("2 ** 10", 1024), ("-3 * 4", -12), ("1e-3 * 2", 2e-3), ("(2 ** 10) ** 3", 1 << 30), ("2 ** -1", 0.5), ("7 % 4", 3),
    ("2.5 ** 100", 2.5 ** 100),
    ("[1, (2, 'x')]", [1, (2, "x")]), ("{'a': 2 * 3}", {"a": 6}), ("'a' + 'b'", "ab"), ("1 << 3 if 0 else 2", None), ("9 ** 9 ** 9", None),
    ("(9 ** 1000) ** 1000", None), ("((9 ** 99) ** 99) ** 99", None), ("(9 ** 1000 + 1) ** 1000", None), ("(-(9 ** 1000)) ** 1000", None),
    ("[0] * 1000", None), ("('a' + 'b') * 99999999", None), ("((1,) + (2,)) * 99999999", None), ("'%99999999d' % 1", None),
    ("('%9999' + '9999d') % 1", None), ("b'%99999999d' % 1", None), ("1 // 0", None),
])
def test_value_or_refusal(text, value):
    tracemalloc.start()
    try:
        if value is None:
            with pytest.raises(NotConstant):
                value_of(node(text))
        else:
            assert value_of(node(text)) == value
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
