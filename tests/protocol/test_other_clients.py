"""A client that is neither ours nor VS Code: dap-mcp, which reads every message by the protocol's own types."""
import asyncio
import logging
import sys

import pytest
from harness import PROGRAMS, line_of

debugger = pytest.importorskip("dap_mcp.debugger")
pytest.importorskip("dvm_core._core")
from dap_mcp.factory import DAPClientSingletonFactory  # noqa: E402
from dap_types import LaunchRequestArguments  # noqa: E402

PROGRAM = PROGRAMS / "real.py"
LINES = ("s = h + scale", "y = s.log()")


class Adapters:
    """A new adapter for each session: the client begins the next one when a program has ended."""

    def __init__(self):
        self.made, self.processes = [], []

    async def create_instance(self):
        self.made.append(DAPClientSingletonFactory(sys.executable, ["-m", "dvm_adapter"]))
        client = await self.made[-1].create_instance()
        self.processes.append(self.made[-1].debugger_process)
        return client

    async def destroy_instance(self, client):
        await self.made[-1].destroy_instance(client)

    async def end(self):
        for process in self.processes:
            if process.returncode is None:
                process.stdin.close()
            await process.wait()


def test_a_first_session_in_a_client_that_takes_the_protocol_at_its_word(caplog):
    adapters = Adapters()
    client = debugger.Debugger(adapters, LaunchRequestArguments(type="dvm", request="launch", program=str(PROGRAM), args=["3", "0.01"],
                                                                python=[sys.executable]))

    async def session():
        await client.initialize()
        for text in LINES:
            answer = await client.set_breakpoint(PROGRAM, line_of(PROGRAM, text))  # at once: it does not wait for `initialized`
            assert answer.success, answer
        view = (await client.launch()).render()
        assert "-> " in view and "s = h + scale" in view and 'name="h"' in view and "f32[8,4]" in view, view
        value = await client.evaluate("h.max()")
        assert value.body.result == "4.0", value
        assert "y = s.log()" in (await client.continue_execution()).render()
        view = (await client.next()).render()
        assert f"line={line_of(PROGRAM, 'return y')}\t" in view, view
        for text in LINES:
            await client.remove_breakpoint(PROGRAM, line_of(PROGRAM, text))
        ended = (await client.continue_execution()).render()
        assert "terminated" in ended and "step 3 mean" in ended, ended

    async def whole():
        try:
            await session()
        finally:
            await adapters.end()

    with caplog.at_level(logging.WARNING):
        asyncio.run(asyncio.wait_for(whole(), 90))
    assert not [text for text in caplog.messages if "Invalid message" in text or "Unexpected message" in text]
