"""`python -m dvm_adapter`: the debug adapter on stdio, or on a socket with --listen."""
from __future__ import annotations

import argparse
import asyncio
import contextlib
import ipaddress
import os
import signal
import socket
import sys
from typing import Any

from .channel import Channel
from .log import Log
from .session import Session

STREAM_LIMIT = 1 << 20


async def serve_stdio(log: Log) -> None:
    """One session on standard input and output. Descriptor 1 is kept for the protocol alone: whatever prints goes to the error stream."""
    loop = asyncio.get_running_loop()
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    reader = asyncio.StreamReader(limit=STREAM_LIMIT)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer)
    transport, protocol = await loop.connect_write_pipe(lambda: asyncio.streams.FlowControlMixin(loop=loop), out)
    session = Session(Channel("client", reader, asyncio.StreamWriter(transport, protocol, None, loop), log), log)
    _on_termination(session.finish)
    await session.run()


async def serve_socket(host: str, port: int, log: Log) -> None:
    """One session per connection until interrupted. Prints the address, for port 0 the one the system chose."""

    sessions: dict[Session, asyncio.Task[None]] = {}

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        session = Session(Channel("client", reader, writer, log), log)
        sessions[session] = asyncio.ensure_future(session.run())
        sessions[session].add_done_callback(lambda task: sessions.pop(session, None))

    server = await asyncio.start_server(connected, host, port, limit=STREAM_LIMIT)
    address = server.sockets[0].getsockname()
    print(f"listening on {address[0]}:{address[1]}", flush=True)
    ended = asyncio.Event()
    _on_termination(ended.set)
    async with server:
        await ended.wait()
        for session in sessions:
            session.finish()
        if sessions:
            await asyncio.wait(sessions.values(), timeout=10)


def _on_termination(end: Any) -> None:
    with contextlib.suppress(NotImplementedError, ValueError):
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT")
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    if not _loopback(host):
        # Whoever reaches the port may start programs as this user, and the protocol knows no passwords.
        raise argparse.ArgumentTypeError(f"{host} is not an address of this machine alone; use 127.0.0.1, ::1 or localhost "
                                         "(from another machine, over a tunnel such as ssh -L)")
    return host, int(port)


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m dvm_adapter", description="Debug adapter for Python and tensor programs (type dvm).")
    parser.add_argument("--listen", metavar="HOST:PORT", type=_address, help="serve on a socket instead of stdio; port 0 chooses one")
    parser.add_argument("--log", metavar="FILE", help="write every protocol message to FILE, one JSON line each")
    options = parser.parse_args(arguments)
    if not options.listen:
        # Ctrl-C in a shared terminal is meant for the program: the adapter ends with its client. A handler and not SIG_IGN, which the
        # program would inherit.
        signal.signal(signal.SIGINT, lambda number, frame: None)
    with contextlib.ExitStack() as stack:
        log = Log(stack.enter_context(open(options.log, "w", encoding="utf-8")) if options.log else None)
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(serve_socket(options.listen[0], options.listen[1], log) if options.listen else serve_stdio(log))
    return 0


if __name__ == "__main__":
    sys.exit(main())
