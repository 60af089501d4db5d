"""The memory curves and their page: exact peaks, hostile names, no outside resources."""
import html.parser
import random
import re

import pytest
from dvm_adapter import memory_html
from dvm_adapter.memory_model import read_buffers, timeline


def random_body(seed, count):
    rng = random.Random(seed)
    buffers = []
    for i in range(count):
        born = rng.randrange(count * 2)
        buffers.append({"id": i, "name": f"t{i}", "cls": rng.choice(["parameter", "activation", "gradient", "unheard of"]),
                        "bytes": rng.randrange(1, 1 << 20), "born": born, "freed": rng.choice([-1, None, born + rng.randrange(1, 50)]),
                        "address": hex(i * 4096), "step": born // 50})
    return {"buffers": buffers, "peak": {}, "copies": 1, "copiesAvoided": 2}


def bytes_alive(body, time):
    return sum(b["bytes"] for b in body["buffers"] if b["born"] <= time and (b["freed"] in (-1, None) or time < b["freed"]))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("points", [5, 60, 100_000])
def test_curves_agree_with_counting_and_keep_the_peak_when_thinned(seed, points):
    body = random_body(seed, 150)
    line = timeline(read_buffers(body), points)
    for time, total, *parts in zip(line.times, line.totals, *line.classes.values(), strict=True):
        assert total == sum(parts) == bytes_alive(body, time)
    assert len(line.times) <= points
    assert line.totals[line.peak] == max(bytes_alive(body, time) for time in range(400))


class _Checker(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.resources = [], []

    def handle_starttag(self, tag, attributes):
        if tag not in ("meta", "path", "line", "circle", "br", "th"):
            self.open.append(tag)
        self.resources += [value for name, value in attributes if name in ("src", "href", "xlink:href")]

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        if tag in self.open:
            while self.open.pop() != tag:
                pass


def test_the_page_is_whole_and_loads_nothing():
    page = memory_html.render(random_body(1, 80), "T & <b>")
    checker = _Checker()
    checker.feed(page)
    assert checker.open == [] and checker.resources == []
    assert not re.search(r"https?:|@import|url\(", page)
    assert "<h1>T &amp; &lt;b&gt;</h1>" in page and "prefers-color-scheme:dark" in page
    for word in ("parameters", "activations", "gradients", "other", "Alive at the peak", "still alive"):
        assert word in page


def test_names_from_the_program_cannot_break_out():
    body = random_body(2, 3)
    body["buffers"][0].update(name="</script><script>alert(1)</script>", place={"path": '"><img src=x>', "line": 1}, shape=[2], dtype="<i>")
    page = memory_html.render(body)
    assert "<script>alert" not in page and "<img" not in page and "<i>[2]" not in page


def test_nothing_recorded_and_odd_numbers_still_make_a_page():
    assert "No buffers were recorded" in memory_html.render({"buffers": []})
    odd = {"buffers": [{"id": None, "bytes": "NaN"}, {"bytes": -5}, {"bytes": 8, "born": 3}], "peak": None, "copies": "NaN"}
    assert "peak 8 B" in memory_html.render(odd)


@pytest.mark.parametrize("count, text", [(0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (1536, "1.5 KiB"), (1020 * 1024, "1,020 KiB"),
                                         (1 << 20, "1 MiB"), (1.42 * (1 << 30), "1.42 GiB"), (1 << 42, "4,096 GiB")])
def test_sizes_have_three_digits(count, text):
    assert memory_html.size(count) == text
