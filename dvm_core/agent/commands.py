"""The table of the wire's commands: each handler declares its name beside itself."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Arguments = dict[str, Any]
Answer = dict[str, Any]
Reply = Callable[[Answer], None]


class CommandError(Exception):
    """A command that cannot be carried out; its text is the answer."""


@dataclass(frozen=True)
class Command:
    name: str
    handler: Callable[..., Any]
    later: bool  # answers through a `reply` it is given, from any thread; the others return their answer


COMMANDS: dict[str, Command] = {}


def command(name: str, *, later: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declares `handler(session, arguments)` -> answer, or with `later` `handler(session, arguments, reply)` -> None."""
    def declare(handler: Callable[..., Any]) -> Callable[..., Any]:
        if name in COMMANDS:
            raise ValueError(f"command {name!r} is declared twice")
        COMMANDS[name] = Command(name, handler, later)
        return handler
    return declare


_MISSING = object()


def need(arguments: Arguments, name: str, kind: type | tuple[type, ...], default: Any = _MISSING) -> Any:
    """The argument, checked. Raises CommandError naming it; with a default, None and absence give that."""
    value = arguments.get(name)
    if value is None and default is not _MISSING:
        return default
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
        kinds = " or ".join(k.__name__ for k in (kind if isinstance(kind, tuple) else (kind,)))
        raise CommandError(f'argument "{name}" is {value!r}; it must be {kinds}')
    return value


def run(session: Any, message: dict[str, Any], send: Callable[[Answer], None]) -> None:
    """Carries out one request of a session, or of what stands for one; its answer goes to `send`, now or later, exactly once."""
    number = message.get("id")

    def reply(answer: Answer) -> None:
        send({"re": number, "ok": True, **answer})

    found = COMMANDS.get(str(message.get("cmd")))
    arguments = {key: value for key, value in message.items() if key not in ("id", "cmd")}
    try:
        if found is None:
            raise CommandError(f"unknown command {message.get('cmd')!r}; known: {', '.join(sorted(COMMANDS))}")
        if found.later:
            found.handler(session, arguments, reply)
        else:
            reply(found.handler(session, arguments) or {})
    except CommandError as error:
        send({"re": number, "ok": False, "error": str(error)})
    except Exception as error:  # every request is answered, also one that meets a fault of ours
        send({"re": number, "ok": False, "error": f"{type(error).__name__}: {error}"})
