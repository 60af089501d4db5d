"""The Python engine: debugpy's own adapter as a child process of ours, or one that already listens."""
from __future__ import annotations

import asyncio
import collections
import contextlib
import ctypes
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from typing import Any

from .channel import Channel, Message, ProtocolError
from .errors import RequestError
from .log import Log
from .processes import tracer_of

DISCONNECT_TIMEOUT = 5.0
GRACE = 3.0  # seconds debugpy's adapter may take to end after its input has ended
INJECTION = 20.0  # seconds a debugger that injects debugpy may go on after that: killed in the middle it takes the program with it
_PR_SET_PDEATHSIG = 1
# Loaded before any fork: between fork and exec nothing may import or allocate much.
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


def _dies_with(parent: int) -> Callable[[], None]:
    def before_exec() -> None:
        # A group of its own: Ctrl-C in a terminal is for the program, not for the adapters.
        os.setpgid(0, 0)
        # debugpy ends by itself when our end of its input closes; this is for the case that it does not get to read it.
        if _libc is not None:
            _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # we died between fork and prctl
            os._exit(1)

    return before_exec


class DebugpyPeer:
    """A DAP connection to debugpy. Its events are handled one after the other, its responses as they come."""

    def __init__(self, channel: Channel, process: asyncio.subprocess.Process | None, log: Log) -> None:
        self.channel = channel
        self.process = process
        self._log = log
        self.target = 0  # process it injects itself into
        self.ended = asyncio.Event()
        self._stderr: collections.deque[str] = collections.deque(maxlen=30)
        self._events: asyncio.Queue[Message | None] = asyncio.Queue()
        self._tasks: list[asyncio.Task[Any]] = []
        self._leaving: asyncio.Task[Message] | None = None  # its disconnect, once it is asked for

    @classmethod
    async def start(cls, log: Log, *options_of_debugpy: str) -> DebugpyPeer:
        """Starts `python -m debugpy.adapter` with the adapter's own interpreter. Must run on the main thread: the kernel ties the
        parent-death signal to the thread that forked."""
        options: dict[str, Any] = {}
        if sys.platform != "win32":
            options["preexec_fn"] = _dies_with(os.getpid())
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "debugpy.adapter", *options_of_debugpy, limit=1 << 20,
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, **options)
        except OSError as error:
            raise RequestError(f"debugpy's adapter could not be started with {sys.executable}: {error}", show=True) from None
        assert process.stdin and process.stdout and process.stderr
        peer = cls(Channel("debugpy", process.stdout, process.stdin, log), process, log)
        peer._tasks.append(asyncio.ensure_future(peer._read_stderr(process.stderr)))
        return peer

    @classmethod
    async def connect(cls, host: str, port: int, log: Log, timeout: float = 10.0) -> DebugpyPeer:
        """Connects to a debugpy adapter that listens: a program that called `listen`, or the adapter of a child's parent session."""
        try:
            reader, writer = await asyncio.wait_for(asyncio.open_connection(host, port, limit=1 << 20), timeout)
        except (OSError, TimeoutError, asyncio.TimeoutError) as error:
            reason = error or f"no answer within {timeout:.0f} s"
            raise RequestError(f"nothing to attach to at {host}:{port} ({reason}). The program must have called "
                               f"dvm.debug.listen(({host!r}, {port})) or debugpy.listen", show=True) from None
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return cls(Channel("debugpy", reader, writer, log), None, log)

    def serve(self, on_request: Callable[[Message], None], on_event: Callable[[Message], Any], on_end: Callable[[], Any]) -> None:
        """Starts reading. `on_event` is awaited for one event after the other: a stop that waits for the tensor engine holds later
        events back, not responses."""
        self._tasks.append(asyncio.ensure_future(self._read(on_request)))
        self._tasks.append(asyncio.ensure_future(self._handle(on_event, on_end)))

    async def _read(self, on_request: Callable[[Message], None]) -> None:
        try:
            await self.channel.run(on_request, self._events.put_nowait)
        except ProtocolError as error:
            self._stderr.append(str(error))
        finally:
            self.ended.set()
            self._events.put_nowait(None)

    async def _handle(self, on_event: Callable[[Message], Any], on_end: Callable[[], Any]) -> None:
        while (event := await self._events.get()) is not None:
            try:
                await on_event(event)
            except Exception:  # a mistake over one event must not keep the next ones, a stop or the end, from the client
                self._log.note(traceback.format_exc())
        await on_end()

    async def _read_stderr(self, stream: asyncio.StreamReader) -> None:
        with contextlib.suppress(ValueError, ConnectionError):
            while line := await stream.readline():
                self._stderr.append(line.decode("utf-8", "replace").rstrip())

    def last_words(self) -> str:
        """What debugpy wrote to its error stream, for the message that says it has gone."""
        return "\n".join(self._stderr)

    async def disconnect(self, arguments: Message) -> None:
        """Ends debugpy's session, with its program or without; waits DISCONNECT_TIMEOUT for the answer and then goes without. It is asked
        once: whoever comes while that is on its way waits for the same answer, for debugpy gives no second one."""
        if self._leaving is None:
            self._leaving = asyncio.create_task(self.channel.ask("disconnect", arguments))
        done, _ = await asyncio.wait({self._leaving}, timeout=DISCONNECT_TIMEOUT)
        if not done or self._leaving.exception() is not None:
            self._log.note(f"debugpy did not disconnect: {self._leaving.exception() if done else 'no answer'!r}")

    async def close(self) -> None:
        """Ends the connection; the process gets GRACE seconds, then its group is killed."""
        await self.channel.close()
        if self.process is not None and self.process.returncode is None:
            try:
                await asyncio.wait_for(self.process.wait(), GRACE)
            except (TimeoutError, asyncio.TimeoutError):
                await self.kill_untraced()
                with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
                    await asyncio.wait_for(self.process.wait(), 1)
        me = asyncio.current_task()
        for task in self._tasks:
            if task is not me:
                task.cancel()

    async def kill_untraced(self) -> None:
        """Kills once nobody holds the process any more that is injected into."""
        end = asyncio.get_running_loop().time() + INJECTION
        while self.target and tracer_of(self.target) and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(0.05)
        self.kill()

    def kill(self) -> None:
        if self.process is not None and self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if sys.platform != "win32":
                    os.killpg(self.process.pid, signal.SIGKILL)
                else:
                    self.process.kill()
