"""The adapter's loopback server: who may connect, and what a child session's adapter gets through it."""
import asyncio
import struct

import pytest
from dvm_adapter import agent_server
from dvm_adapter.agent_peer import read_frame
from dvm_adapter.agent_server import AgentServer, connect_relay
from dvm_adapter.errors import RequestError
from dvm_adapter.log import Log
from dvm_wire import encode


def run(scenario):
    async def main():
        server = AgentServer(Log())
        await server.start()
        try:
            await asyncio.wait_for(scenario(server), 20)
        finally:
            await server.close()

    asyncio.run(main())


async def connect(server):
    host, port = server.address.split(":")
    return await asyncio.open_connection(host, int(port))


def hello(server, **more):
    return {"type": "hello", "token": server.token, "pid": 77, "python": [3, 11], "device": "cpu", **more}


@pytest.mark.parametrize("first", [
    lambda s: encode(hello(s, token="0" * 32)), lambda s: encode(hello(s, token=None)), lambda s: encode({"type": "hello", "pid": 1}),
    lambda s: encode(hello(s, pid="77")), lambda s: encode(hello(s, type="stranger")), lambda s: struct.pack(">I", 1 << 30),
    lambda s: encode(hello(s, pad="x" * 70_000)), lambda s: b"GET / HTTP/1.1\r\n\r\n", lambda s: b""])
def test_strangers_are_shown_the_door(first):
    taken = []

    async def scenario(server):
        server.take = lambda agent: taken.append(agent) or True
        reader, writer = await connect(server)
        writer.write(first(server))
        if not first(server):
            writer.write_eof()
        assert await reader.read() == b""

    run(scenario)
    assert taken == []


def test_who_says_nothing_is_not_waited_for_long(monkeypatch):
    monkeypatch.setattr(agent_server, "HELLO_TIMEOUT", 0.2)

    async def scenario(server):
        reader, _ = await connect(server)
        assert await reader.read() == b""

    run(scenario)


def test_an_agent_is_asked_and_answers_and_its_end_is_noticed():
    peers, events, gone = [], [], []

    async def scenario(server):
        def take(agent):
            agent.on_event, agent.on_gone = events.append, lambda: gone.append(True)
            peers.append(agent)
            return True

        server.take = take
        reader, writer = await connect(server)
        writer.write(encode(hello(server)) + encode({"ev": "step", "step": 1, "launches": 2}))
        while not peers:
            await asyncio.sleep(0.01)
        asked = asyncio.ensure_future(peers[0].ask("status"))
        request = await read_frame(reader)
        assert request == {"id": 1, "cmd": "status"}
        writer.write(encode({"re": 1, "ok": True, "device": "cpu"}))
        assert (await asked)["device"] == "cpu"
        refused = asyncio.ensure_future(peers[0].ask("dance", how="fast"))
        assert await read_frame(reader) == {"id": 2, "cmd": "dance", "how": "fast"}
        writer.write(encode({"re": 2, "ok": False, "error": "no dancing"}))
        with pytest.raises(RequestError, match="no dancing"):
            await refused
        with pytest.raises(RequestError, match="did not answer 'sleep' within 0 s"):
            await peers[0].ask("sleep", timeout=0.1)
        pending = asyncio.ensure_future(peers[0].ask("late"))
        await asyncio.sleep(0.05)
        writer.close()
        with pytest.raises(RequestError, match="has gone"):
            await pending
        with pytest.raises(RequestError, match="has gone"):
            await peers[0].ask("after")

    run(scenario)
    assert events == [{"ev": "step", "step": 1, "launches": 2}] and gone == [True]


@pytest.mark.parametrize("agent_first", [True, False])
def test_a_childs_adapter_gets_the_childs_agent(agent_first):
    async def scenario(server):
        asked = None
        if not agent_first:
            asked = asyncio.ensure_future(connect_relay(server.address, server.token, 77, Log()))
            await asyncio.sleep(0.1)
        reader, writer = await connect(server)
        writer.write(encode(hello(server)))
        await asyncio.sleep(0.1)
        # nobody listens yet: an agent is never blocked by that
        if agent_first:
            writer.write(encode({"ev": "notice", "text": "x" * 1000}) * 2000)
            await asyncio.wait_for(writer.drain(), 5)
        peer = await (asked or connect_relay(server.address, server.token, 77, Log()))
        assert peer.pid == 77 and peer.hello["token"] == ""
        running = asyncio.ensure_future(peer.run())
        answer = asyncio.ensure_future(peer.ask("tensors"))
        assert (await read_frame(reader))["cmd"] == "tensors"
        writer.write(encode({"re": 1, "ok": True, "tensors": []}))
        assert (await answer)["tensors"] == []
        peer.close()
        assert await read_frame(reader) is None  # the child's session has ended: its agent learns it
        await running

    run(scenario)


@pytest.mark.parametrize("agent_first", [True, False])
def test_what_an_agent_says_before_it_is_taken_arrives_first_and_in_order(agent_first):
    async def scenario(server):
        asked = None
        if not agent_first:
            asked = asyncio.ensure_future(connect_relay(server.address, server.token, 77, Log()))
            await asyncio.sleep(0.1)
        _, writer = await connect(server)
        writer.write(encode(hello(server)) + b"".join(encode({"ev": "step", "step": n}) for n in range(50)))
        if agent_first:
            await asyncio.sleep(0.1)
        peer = await (asked or connect_relay(server.address, server.token, 77, Log()))
        steps = []
        peer.on_event = lambda event: steps.append(event["step"])
        writer.write(encode({"ev": "step", "step": 50}))
        writer.write_eof()
        await peer.run()
        assert steps == list(range(51))

    run(scenario)


def test_a_session_that_takes_an_agent_late_hears_what_it_said():
    async def scenario(server):
        _, writer = await connect(server)
        writer.write(encode(hello(server)) + encode({"ev": "step", "step": 1}))
        await asyncio.sleep(0.1)
        heard = []

        def take(agent):
            agent.on_event = heard.append
            return True

        server.take = take
        server.offer_again()
        assert heard == [{"ev": "step", "step": 1}]

    run(scenario)


def test_of_a_talkative_agent_nobody_takes_only_the_newest_is_kept(monkeypatch):
    monkeypatch.setattr(agent_server, "KEPT_LIMIT", 1000)

    async def scenario(server):
        _, writer = await connect(server)
        writer.write(encode(hello(server)) + b"".join(encode({"ev": "step", "step": n, "pad": "x" * 200}) for n in range(100)))
        await asyncio.sleep(0.1)
        peer = await connect_relay(server.address, server.token, 77, Log())
        steps = []
        peer.on_event = lambda event: steps.append(event["step"])
        writer.close()
        await peer.run()
        assert steps and steps == list(range(100 - len(steps), 100)) and len(steps) <= 5

    run(scenario)


def test_who_waits_for_an_agent_and_goes_leaves_nothing_behind():
    async def scenario(server):
        reader, writer = await connect(server)
        writer.write(encode({"type": "relay", "token": server.token, "pid": 77}))
        while 77 not in server._wanted:
            await asyncio.sleep(0.01)
        writer.close()
        while server._wanted:
            await asyncio.sleep(0.01)
        # the agent that comes then is for the next one who asks
        agent, writer = await connect(server)
        writer.write(encode(hello(server)))
        peer = await connect_relay(server.address, server.token, 77, Log())
        peer.send("tensors")
        assert (await read_frame(agent))["cmd"] == "tensors"

    run(scenario)


def test_a_relay_without_the_token_gets_nothing():
    async def scenario(server):
        with pytest.raises(RequestError, match="ended"):
            await connect_relay(server.address, "wrong", 77, Log())
        with pytest.raises(RequestError, match="cannot be reached"):
            await connect_relay("127.0.0.1:9", server.token, 77, Log())

    run(scenario)
