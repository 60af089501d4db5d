"""The Memory View's answers: lanes without gaps, curves of a stretch, the largest first, exact peaks."""
from __future__ import annotations

import random

from dvm_adapter.memory_view import MOST_BLOCKS, Lanes, Log, view
from dvm_adapter.terminal_text import memory_lines


def entry(number: int, born: int, freed: int | None, size: int, address: int, cls: str = "activation", **more: object) -> dict:
    return {"id": number, "name": f"t{number}", "class": cls, "bytes": size, "born": born, "freed": freed, "address": address,
            "step": born // 10 + 1, "shape": [size // 4], "dtype": "f32", **more}


def log_of(*entries: dict) -> Log:
    return Log.of({"buffers": list(entries), "step": 3, "copies": 1})


def test_lanes_leave_out_what_nobody_used() -> None:
    lanes = Lanes(log_of(entry(1, 0, 5, 100, 1000), entry(2, 0, 5, 50, 1050), entry(3, 0, 5, 10, 9000), entry(4, 6, 9, 20, 9010)).buffers)
    assert [lanes.low(address) for address in (1000, 1050, 9000, 9010)] == [0, 50, 100, 110]
    assert lanes.height == 130


def test_a_stretch_has_its_own_peak_and_contributors() -> None:
    log = log_of(entry(1, 0, None, 400, 0, "parameter"), entry(2, 2, 4, 4000, 1000), entry(3, 10, 12, 800, 1000),
                 entry(4, 11, 13, 80, 5000))
    whole = view(log, 0, 14)
    assert (whole["peak"]["at"], whole["peak"]["bytes"]) == (2, 4400)
    assert [c["id"] for c in whole["peak"]["contributors"]] == [2, 1]
    assert whole["steps"] == [{"step": 1, "from": 0, "to": 10, "peak": 4400}, {"step": 2, "from": 10, "to": 14, "peak": 1280}]
    late = view(log, 9, 14)
    assert (late["peak"]["at"], late["peak"]["bytes"], late["count"]) == (11, 1280, 3)
    assert late["classes"] == ["parameter", "activation"] and late["times"] == [9, 10, 11, 12, 13]
    assert late["bytes"] == [[400] * 5, [0, 800, 880, 80, 0]]


def test_curves_are_exact_at_any_length_and_the_largest_are_sent() -> None:
    draw = random.Random(3)
    entries = [entry(n, n, n + draw.randrange(1, 50), draw.randrange(1, 1 << 20), draw.randrange(1 << 30)) for n in range(10_000)]
    told = view(log_of(*entries), 0, 10_060)
    live = [0] * 10_061
    for e in entries:
        for time in range(e["born"], e["freed"]):
            live[time] += e["bytes"]
    assert told["peak"]["bytes"] == max(live)
    assert all(sum(column) == live[time] for time, *column in zip(told["times"], *told["bytes"], strict=True))
    assert len(told["buffers"]) == MOST_BLOCKS and told["count"] == 10_000
    sent = {b["id"] for b in told["buffers"]}
    assert max(entries, key=lambda e: e["bytes"] * (e["freed"] - e["born"]))["id"] in sent


def test_an_empty_log_is_a_view() -> None:
    told = view(log_of(), 0, 1)
    assert told["buffers"] == [] and told["times"] == [] and told["peak"]["bytes"] == 0


def test_the_terminal_lists_what_was_alive_at_the_peak_the_largest_first_and_sums_up_the_rest() -> None:
    def buffer(born: int, freed: int | None, mebibytes: int, name: str) -> dict:
        return {"born": born, "freed": freed, "bytes": mebibytes << 20, "name": name, "place": {"path": "/w/big.py", "line": born + 1}}

    early, late = buffer(1, 3, 64, "early"), buffer(9, None, 64, "late")
    alive = [buffer(2, None, 1, f"small{number}") for number in range(9)] + [buffer(4, 7, 32, "h")]
    peak = {"bytes": 41 << 20, "at": 5}
    told = memory_lines({"step": 3, "peak": peak, "copies": 0, "copiesAvoided": 1, "buffers": [early, *alive, late]})
    assert told[0] == "step 3: peak 41 MiB, 12 buffers in the log, 0 copies, 1 avoided"
    assert told[1:3] == ["alive at the peak, 10 buffers:", "      32 MiB  h  big.py:5"]
    assert told[-1] == "       2 MiB  in 2 more" and not any("early" in line or "late" in line for line in told)
