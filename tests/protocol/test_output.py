"""What becomes of a program's output on its way: styling for those who know it, order, and what ends it."""
import asyncio

import pytest
from dvm_adapter.output import Output

STYLED = "\x1b[1;31mred\x1b[0m \x1b]8;;https://example.org\x1b\\link\x1b]8;;\x07 \x1b(B\x1b7[0] é漢\n"
PLAIN = "red link [0] é漢\n"


def told(parts, plain, category="stdout"):
    """The events that come of those pieces of output."""
    events = []

    class Client:
        def event(self, name, body):
            events.append(body)

        def backlog(self):
            return 0

    async def main():
        output = Output(Client())
        output.plain = plain
        for part in parts:
            output.event({"category": category, "output": part} if isinstance(part, str) else part)
        output.finish()

    asyncio.run(main())
    return events


def texts(*arguments):
    return "".join(body["output"] for body in told(*arguments))


def test_styling_reaches_a_client_that_knows_it_and_no_other():
    assert texts([STYLED], False) == STYLED
    assert texts([STYLED], True) == PLAIN


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_styling_that_comes_in_pieces_is_taken_out_as_well(size):
    parts = [STYLED[at:at + size] for at in range(0, len(STYLED), size)]
    assert texts(parts, True) == PLAIN


def test_output_with_more_than_text_keeps_its_place_and_loses_its_styling_too():
    parts = ["\x1b[1mbefore\n", {"category": "stdout", "output": "\x1b[2mtensor\n", "variablesReference": 7}, "after\n"]
    events = told(parts, True)
    assert [body["output"] for body in events] == ["before\n", "tensor\n", "after\n"]
    assert events[1]["variablesReference"] == 7


def test_one_stream_does_not_end_what_another_has_begun():
    parts = [{"category": "stdout", "output": "a\x1b["}, {"category": "stderr", "output": "m1"}, {"category": "stdout", "output": "31mb"}]
    assert [(body["category"], body["output"]) for body in told(parts, True)] == [("stdout", "a"), ("stderr", "m1"), ("stdout", "b")]
