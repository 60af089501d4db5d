"""From `initialize` to `disconnect`."""
from __future__ import annotations

import asyncio
import contextlib
import os
import time
from typing import TYPE_CHECKING, Any

from dvm_wire import new_token

from . import attach as attaching
from .agent_server import connect_relay
from .config import Config, environment_for, for_debugpy, own_path
from .debugpy_peer import DebugpyPeer
from .errors import RequestError
from .own_arguments import TEXT, TEXTS, Kind
from .processes import asleep_since, children, launcher_of
from .rank import Member
from .registry import Body, Needs, capabilities, request

if TYPE_CHECKING:
    from .session import Session

_PREPARED = 5.0  # seconds for pydevd to do so little, before the program begins without
IDLE_LAUNCHER = 2.0  # seconds debugpy's launcher may sleep without a program
LEFT_LAUNCHER = 0.2  # the same after it has had one: it will not start another
GONE_LAUNCHER = 1.0  # after it has gone: the connection it told debugpy of may still be on its way
_LAST_ANSWER = 1.0  # seconds for debugpy to answer behind the end that it has told of
LOOK_AT_LAUNCHER = 0.05  # seconds between looks: a program that dies at once must have been seen


class NoTerminal(RequestError):
    """The client has refused to run the program in a terminal of its own; the text is its reason."""


@request("initialize", needs=Needs.NOTHING, supportsANSIStyling=True)
async def initialize(session: Session, arguments: Body) -> Body:
    """Answers with what the modules have declared; debugpy is started later, when it is known for what."""
    if session.client_arguments:
        raise RequestError("initialize was sent twice")
    session.client_arguments = {"adapterID": "dvm", **arguments}
    # VS Code had colours before there was a word for them.
    session.output.plain = not arguments.get("supportsANSIStyling") and arguments.get("clientID") != "vscode"
    return dict(capabilities)


@request("launch", needs=Needs.NOTHING, runs=True)
async def launch(session: Session, arguments: Body) -> Body:
    return await _start(session, "launch", arguments)


@request("attach", needs=Needs.NOTHING, runs=True)
async def attach(session: Session, arguments: Body) -> Body:
    return await _start(session, "attach", arguments)


async def _start(session: Session, command: str, arguments: Body) -> Body:
    if session.has_python or session.config.arguments:
        raise RequestError(f"{command}: this session has a program already")
    config = Config.read(command, arguments)
    session.configurable.clear()
    try:
        try:
            return await begin(session, config)
        except NoTerminal as error:
            session.output.say(f"the client has run the program in no terminal ({error}); its output appears here instead", "important")
            await session.end_program()
            config.arguments = {**config.arguments, "console": "internalConsole"}
            return await begin(session, config)
    finally:
        session.configurable.set()  # it may have failed


async def begin(session: Session, config: Config) -> Body:
    """Starts debugpy and hands it the request. Its response comes only after configurationDone, and ours with it."""
    session.config = config
    environment = environment_for(config, session.agents.address, session.agents.token)
    forwarded = for_debugpy(config, environment)
    for mapping in config.mappings:
        if not os.path.isdir(mapping["localRoot"]):
            session.output.say(f"pathMappings: there is no folder {mapping['localRoot']} here, so no breakpoint is set by it", "important")
    access = ""  # that the program's own debugger asks of ours
    if config.launched:
        check_program(config)
        session.reloads.begin()
        _choose_console(session, forwarded)
        own_path(forwarded, config.no_debug)
    else:  # a client that sees this ends the session and starts another, which attaches again
        session.event("capabilities", {"capabilities": {"supportsRestartRequest": False}})
    if config.process:
        access = await _choose_entrance(config, config.process, forwarded)
    if config.connect:
        peer = await DebugpyPeer.connect(*config.connect, session.log)
    else:
        peer = await DebugpyPeer.start(session.log, *(("--server-access-token", access) if access else ()))
    session.use_debugpy(peer)
    # debugpy asks for these to send reverse requests; the rest of what the client can do makes no difference to it.
    await session.python.ask("initialize", {**session.client_arguments, "adapterID": "debugpy"})
    if config.relay and config.child:
        session.spawn(_find_child_agent(session, config.relay, config.child))
    answer: asyncio.Future[Any] = asyncio.ensure_future(session.python.ask("launch" if config.launched else "attach", forwarded))
    if config.process and not config.connect:
        try:
            if access:
                await attaching.enter(session, config.process, access, answer)
            else:
                peer.target = config.process
                await attaching.injected(session, config.process, answer)
        except BaseException:  # also a client that does not want to wait any longer
            answer.cancel()
            session.spawn(peer.kill_untraced())
            raise
    if config.launched and peer.process is not None:
        died: asyncio.Future[Any] = asyncio.ensure_future(
            _died_at_start(session, peer.process.pid, forwarded.get("console") == "internalConsole"))
        refused: asyncio.Future[Any] = session.children.no_terminal
        await asyncio.wait({answer, died, refused}, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done() and (refused.done() or died.result()):
            died.cancel()
            answer.cancel()
            session.python_events.over = refused.done()  # nobody hears of this debugpy, which would wait a minute
            peer.kill()
            raise NoTerminal(refused.result()) if refused.done() else RequestError(
                "the program ended before the debugger could reach it", show=True)
        died.cancel()
    over: asyncio.Future[Any] = session.python_events.told_over  # by a client that ends what has not begun: debugpy then answers nothing
    await asyncio.wait({answer, over}, return_when=asyncio.FIRST_COMPLETED)
    done, _ = await asyncio.wait({answer}, timeout=_LAST_ANSWER)
    if not done:
        answer.cancel()
        raise RequestError("the program was ended before it began")
    return await answer


async def _choose_entrance(config: Config, pid: int, forwarded: Body) -> str:
    """How to attach to a process; changes `forwarded` to it. The token of the program's own debugger, "" where none comes to us."""
    attaching.check(pid)
    told = await attaching.at_door(pid)
    del forwarded["processId"]
    if isinstance(told, str):
        attaching.check_injection(pid, told)
        forwarded["processId"] = pid
        return ""
    if told.get("listens"):
        host, port = told["listens"]
        config.connect = str(host), int(port)
        forwarded["connect"] = {"host": host, "port": port}
        return ""
    forwarded["listen"] = {"host": "127.0.0.1", "port": 0}
    return new_token()


async def _died_at_start(session: Session, debugpy: int, starts: bool = False) -> bool:
    """True when the program has gone before it was connected: debugpy would wait a minute for it, deaf to everything else.

    Its launcher then has no child and nothing to do, or has gone as well. A launcher still starting has no child either, but works, or
    debugpy's adapter does, which it waits for. starts: that starts the launcher itself, which may come and go between two looks."""
    idle, since, may_idle, seen = "", time.monotonic(), IDLE_LAUNCHER, False
    while not session.started:
        launcher = await asyncio.to_thread(launcher_of, debugpy)
        alive = bool(launcher and children(launcher))
        if alive:
            may_idle = LEFT_LAUNCHER
        seen = seen or bool(launcher)
        now = "gone" if seen and not launcher else ""
        if not now and not alive and (launcher or starts and not children(debugpy)):
            now = _both(asleep_since(launcher), asleep_since(debugpy)) if launcher else asleep_since(debugpy)
        if now == "gone":
            may_idle = GONE_LAUNCHER
        if not now or now != idle:
            idle, since = now, time.monotonic()
        elif time.monotonic() - since > may_idle:
            return True
        await asyncio.sleep(LOOK_AT_LAUNCHER)
    return False


def _both(first: str, second: str) -> str:
    return f"{first}, {second}" if first and second else ""


def _is_variables(value: object) -> bool:
    return isinstance(value, dict) and all(item is None or isinstance(item, str) for item in value.values())


# What a launch must have where it has it.
_LAUNCHES = {"program": TEXT, "module": TEXT, "cwd": TEXT, "args": TEXTS, "python": TEXTS, "env": Kind("an object of texts", _is_variables)}


def check_program(config: Config) -> None:
    """Raises RequestError for what cannot be started. debugpy would answer with the launcher's traceback; usual mistakes deserve a
    sentence, and a restart that is refused leaves the program alone."""
    arguments = config.arguments
    for name, kind in _LAUNCHES.items():
        if arguments.get(name) is not None and not kind.fits(arguments[name]):
            raise RequestError(f'"{name}" of a launch must be {kind.words}, not {arguments[name]!r:.80}', show=True)
    if arguments.get("sudo"):
        return
    program, folder, python = (arguments.get(name) or "" for name in ("program", "cwd", "python"))
    if folder and not os.path.isdir(folder):
        raise RequestError(f'"cwd" is no folder: {folder}', show=True)
    if program and not os.path.exists(path := os.path.join(folder, os.path.expanduser(program))):
        raise RequestError(f'"program" does not exist: {path}', show=True)
    interpreter = python if isinstance(python, str) else python[0]
    if os.path.isabs(interpreter) and not os.access(interpreter, os.X_OK):
        raise RequestError(f'"python" names no interpreter that can be run: {interpreter}', show=True)


def _choose_console(session: Session, forwarded: Body) -> None:
    console = forwarded.get("console", "internalConsole")
    if console != "internalConsole" and not session.client_arguments.get("supportsRunInTerminalRequest"):
        session.output.say(f"this client has no terminal for \"console\": {console!r}; the program's output appears here instead")
        forwarded["console"] = "internalConsole"


async def _find_child_agent(session: Session, relay: Body, pid: int) -> None:
    agent = await connect_relay(str(relay.get("address")), str(relay.get("token")), pid, session.log)
    if isinstance(relay.get("rank"), dict):
        try:
            session.member = await Member.join(session, relay, pid)
        except RequestError as error:
            session.log.note(f"this rank goes on alone: {error}")
    session.use_agent(agent)
    await agent.run()


@request("configurationDone", runs=True, supportsConfigurationDoneRequest=True)
async def configuration_done(session: Session, arguments: Body) -> Body:
    if session.python_events.prepared is not None:
        await asyncio.wait([session.python_events.prepared], timeout=_PREPARED)  # or the program's first import is before it
    return await session.python.ask("configurationDone", arguments)


@request("threads")
async def threads(session: Session, arguments: Body) -> Body:
    return await session.python.ask("threads", arguments)


@request("terminate", supportsTerminateRequest=True)
async def terminate(session: Session, arguments: Body) -> Body:
    """Ctrl-C in the program, from where it stands: a training may save what it has. A second one ends the process."""
    session.debuggee.doomed = True
    answer = await session.python.ask("terminate", arguments)
    session.stops.release(everything=True)
    return answer


@request("disconnect", needs=Needs.NOTHING, supportTerminateDebuggee=True)
async def disconnect(session: Session, arguments: Body) -> Body:
    """Default: a launched program ends with its session, an attached one goes on without hooks."""
    kill = arguments.get("terminateDebuggee")
    kill = session.config.launched if kill is None else bool(kill)
    session.debuggee.doomed = kill
    await session.end_restart()  # or debugpy would begin the next program before it hears of the end
    session.reloads.stop()
    if not kill and session.has_agent:
        # Before debugpy lets the program go: hooks are taken out while it still stands.
        with contextlib.suppress(RequestError):
            await session.tensors.ask("detach", timeout=2)
    await session.disconnect_python({**arguments, "terminateDebuggee": kill})
    session.output.finish()
    session.finish()
    return {}


@request("cancel", needs=Needs.NOTHING, supportsCancelRequest=True)
async def cancel(session: Session, arguments: Body) -> Body:
    """The request named is answered `cancelled` if it is still being served; work already done in the program is not undone."""
    number, progress = arguments.get("requestId"), str(arguments.get("progressId") or "")
    if number is None and progress.startswith("dvm-") and progress[4:].isdecimal() and len(progress) < 20:
        number = int(progress[4:])
    if number is not None and type(number) is not int:
        raise RequestError(f'"requestId" of cancel must be a whole number, not {number!r:.50}')
    session.cancel(number)
    return {}
