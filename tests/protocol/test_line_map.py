"""Lines of two versions of a file, both ways."""
import random

import pytest
from dvm_adapter.line_map import LineMap


def test_what_stands_in_both_texts_is_found_and_what_does_not_is_none():
    lines = LineMap("a\nb\nc\nd\n", "new\na\nb\nC\nd\n")
    assert [lines.to_disk(n) for n in range(1, 6)] == [2, 3, None, 5, 6]
    assert [lines.to_force(n) for n in range(1, 7)] == [None, 1, 2, None, 4, 5]
    assert lines.to_disk(7) is None and lines.to_force(0) is None


@pytest.mark.parametrize("seed", range(200))
def test_both_ways_agree_and_lead_to_the_same_line_in_order(seed):
    draw = random.Random(seed)
    old = [draw.choice("abc") for _ in range(draw.randrange(12))]
    new = list(old)
    for _ in range(draw.randrange(4)):
        at = draw.randrange(len(new) + 1)
        new[at:at + draw.randrange(3)] = [draw.choice("abcxy") for _ in range(draw.randrange(3))]
    lines = LineMap("\n".join(old), "\n".join(new))
    before, after = "\n".join(old).split("\n"), "\n".join(new).split("\n")
    there = {n: lines.to_disk(n) for n in range(1, len(before) + 1)}
    found = {n: m for n, m in there.items() if m is not None}
    assert all(before[n - 1] == after[m - 1] and lines.to_force(m) == n for n, m in found.items())
    assert list(found.values()) == sorted(set(found.values()))
    assert {m for m in range(1, len(after) + 1) if lines.to_force(m) is not None} == set(found.values())
    if old == new:
        assert len(found) == len(before)
