"""Breakpoints and addresses of instructions, in the adapter alone: what a race between requests and a huge program may not do."""
import asyncio
import types

import pytest
from dvm_adapter import addresses, attach, disassembly
from dvm_adapter.errors import RequestError
from dvm_adapter.own_arguments import checked
from dvm_wire import doors


class Points:
    """What dvm/breakInstruction needs of a session's breakpoints."""

    def __init__(self):
        self.own, self._last = [], 0

    @property
    def on_instructions(self):
        return list(self.own)

    def new_id(self):
        self._last += 1
        return self._last

    def alone(self, number):
        pass


def session(ask):
    return types.SimpleNamespace(breakpoints=Points(), tensors=types.SimpleNamespace(ask=ask))


def places(points):
    return [(item["program"], item["instruction"]) for item in points.own]


def test_a_refused_breakpoint_leaves_what_another_request_has_set_meanwhile():
    async def both():
        asked, go_on = asyncio.Event(), asyncio.Event()

        async def ask(command, items):
            if items and items[-1]["instruction"] == 999:
                asked.set()
                await go_on.wait()
            return {"results": [{"id": item["id"], "verified": item["instruction"] != 999} for item in items]}

        here = session(ask)
        await disassembly.break_instruction(here, {"program": 1, "instruction": 2})
        refused = asyncio.create_task(disassembly.break_instruction(here, {"program": 1, "instruction": 999}))
        await asked.wait()
        await disassembly.break_instruction(here, {"program": 1, "instruction": 5})
        go_on.set()
        with pytest.raises(RequestError, match="there is no instruction 999"):
            await refused
        return places(here.breakpoints)

    assert asyncio.run(both()) == [(1, 2), (1, 5)]


def test_a_place_that_is_refused_anew_keeps_its_breakpoint():
    async def twice():
        verified = True

        async def ask(command, items):
            return {"results": [{"id": item["id"], "verified": verified} for item in items]}

        here = session(ask)
        await disassembly.break_instruction(here, {"program": 1, "instruction": 2})
        verified = False
        with pytest.raises(RequestError):
            await disassembly.break_instruction(here, {"program": 1, "instruction": 2})
        return places(here.breakpoints)

    assert asyncio.run(twice()) == [(1, 2)]


@pytest.mark.parametrize("asked, told", [({"program": True, "instruction": 1}, '"program" is True; it must be a whole'),
                                         ({"program": 1, "instruction": False}, '"instruction" is False; it must be a whole'),
                                         ({"program": 1, "instruction": 1, "on": "false"}, '"on" is \'false\''),
                                         ({"program": 1, "instruction": 1, "on": 0}, '"on" is 0')])
def test_what_is_no_number_and_no_truth_is_refused(asked, told):
    with pytest.raises(RequestError, match=told):
        checked("dvm/breakInstruction", asked)


def test_tile_instructions_beyond_the_addresses_are_shown_as_invalid():
    assert addresses.tile_of(addresses.parse(addresses.tile_address(7, 16383, 65535))[1]) == (16383, 65535)
    for area, line in ((16384, 0), (0, 65536), (-1, 0), (0, -1)):
        with pytest.raises(RequestError, match="has no address"):
            addresses.tile_address(7, area, line)

    async def ask(command, program):
        return {"instructions": [{"area": area, "line": line, "text": "x"} for area, line in ((0, 0), (16383, 65535), (16384, 0))]}

    rows = asyncio.run(disassembly._tile_code(session(ask), 7, (0, 0), 0, 5))
    assert [row.get("presentationHint") for row in rows] == [None, None, "invalid", "invalid", "invalid"]
    assert all(addresses.parse(row["address"])[0] == 7 for row in rows)  # none runs over into the next program


def test_where_no_signal_asks_whether_a_process_lives_none_is_sent(monkeypatch, tmp_path):
    monkeypatch.setattr("os.kill", lambda pid, signal: pytest.fail("a signal was sent"))
    monkeypatch.setattr(doors, "_NO_SIGNAL_0", True)
    monkeypatch.setattr(attach, "_NONE_HERE", True)
    left = tmp_path / "4194999-0.json"
    left.touch()
    doors.sweep(tmp_path)
    assert left.exists()
    with pytest.raises(RequestError, match=r"no attaching by process id on Windows: have the program call dvm\.debug\.listen"):
        attach.check(4711)
