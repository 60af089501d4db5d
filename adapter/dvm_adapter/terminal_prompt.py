"""The prompt of `dvm debug`: the loop, the commands that let the program go on, and what a stop shows."""
from __future__ import annotations

import cmd
import os
import re
import sys
from typing import Any

from .client import Message, RequestFailed
from .terminal_session import Debuggee, Ended, Mistake, told_by
from .terminal_text import frame_line, named_by_its_line, reason_of, source_lines, tensors_of_line

ALIASES = {"b": "break", "cl": "clear", "r": "run", "c": "continue", "cont": "continue", "n": "next", "s": "step", "o": "out",
           "si": "stepi", "w": "where", "bt": "where", "f": "frame", "p": "print", "t": "tensors", "l": "list", "q": "quit",
           "exit": "quit", "h": "help", "?": "help"}


class Prompt(cmd.Cmd):
    """The prompt. A command is a method `do_NAME`; its docstring is its help."""

    prompt = "(dvm) "
    doc_header = "Commands (help NAME says more):"

    def __init__(self, program: Debuggee) -> None:
        super().__init__()
        self.program = program
        self.scripted = not sys.stdin.isatty()
        self.use_rawinput = not self.scripted
        self.code = 0
        self._bold = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        self.listed = 0

    # ---- the loop
    def say(self, text: str, bold: bool = False) -> None:
        print(f"\x1b[1m{text}\x1b[0m" if bold and self._bold else text, flush=True)

    def get_names(self) -> list[str]:
        return [name for name in super().get_names() if name != "do_EOF"]

    def precmd(self, line: str) -> str:
        if self.scripted:  # what was asked stands before its answer, as if it had been typed
            self.say("" if line == "EOF" else line.rstrip())
        name, rest = re.match(r"\s*(\w+|\?|)\s*(.*)", line, re.S).groups()  # type: ignore[union-attr]
        return f"{ALIASES.get(name, name)} {rest}".strip() if name else line.strip()

    def onecmd(self, line: str) -> bool:
        """Runs a command; whatever is wrong with it is one line, and the loop goes on."""
        try:
            self.program.look()
            return bool(super().onecmd(line))
        except Ended as end:
            self.say(str(end))
            self.code = end.code
            return True
        except KeyboardInterrupt:
            self.say("interrupted")
        except (Mistake, RequestFailed, TimeoutError) as error:
            self.say(f"error: {told_by(error)}")
        except Exception as error:
            self.say(f"error: {type(error).__name__}: {told_by(error)}")
        return False

    def emptyline(self) -> bool:
        return False

    def default(self, line: str) -> None:
        raise Mistake(f"no command {line.split()[0]!r}; help lists them, print EXPRESSION evaluates")

    def do_help(self, arg: str) -> None:
        """help [COMMAND]"""
        name = ALIASES.get(arg, arg)
        if name and not hasattr(self, f"do_{name}"):
            self.default(name)
        super().do_help(name)

    # ---- going on
    def _go(self, command: str = "continue", **more: Any) -> None:
        self._show_stop(self.program.go(command, **more))

    def do_run(self, arg: str) -> None:
        """run (r): begin, or go on, until the next stop or the end; Ctrl-C pauses, a second one ends the session"""
        self._go()

    def do_restart(self, arg: str) -> None:
        """restart: end the program and begin anew; breakpoints, filters and watches stay in force"""
        self._show_stop(self.program.restart())

    def do_continue(self, arg: str) -> None:
        """continue (c): as run"""
        self._go()

    def do_pause(self, arg: str) -> None:
        """pause [SECONDS]: go on, and pause after so many seconds (1); while the program runs, Ctrl-C pauses at once"""
        self._go(pause_after=number_in(arg, 1.0, float))

    def do_next(self, arg: str) -> None:
        """next (n): to the next line"""
        self._step("next")

    def do_step(self, arg: str) -> None:
        """step (s): into a call"""
        self._step("stepIn")

    def do_out(self, arg: str) -> None:
        """out (o): to the end of this function"""
        self._step("stepOut")

    def do_stepi(self, arg: str) -> None:
        """stepi (si): to the next instruction of the tensor program, or of a tile"""
        self._step("next", granularity="instruction")

    def do_tile(self, arg: str) -> None:
        """tile: into the tile code of the area that begins here; stepi goes on in it, next leaves it"""
        try:
            self._step("stepIn", granularity="tile")
        except RequestFailed:
            self.program.renew()  # the stop stands, its frames' ids do not
            raise

    def _step(self, command: str, **more: Any) -> None:
        self.program.stopped()
        self._go(command, **more)

    def _show_stop(self, stop: Message) -> None:
        self.listed = 0
        self.say(reason_of(stop), bold=True)
        if self.program.frames:
            frame = self.program.current()
            self.say(frame_line(frame, "▸"))
            if not named_by_its_line(frame):
                for line in source_lines(frame, frame["line"], frame["line"]):
                    self.say(line)
            for tensor in tensors_of_line(frame, self.tensors()):
                self.say(f"    {tensor['name']}  {tensor['value']}")

    def tensors(self) -> list[Message]:
        top = self.program.real_frames()[0]
        scope = self.program.client.scopes(top["id"]).get("Tensors")
        return self.program.client.variables(scope["variablesReference"]) if scope else []

    # ---- the end
    def do_quit(self, arg: str) -> bool:
        """quit (q), end of input: end the session, and the program with it; one that was attached to runs on"""
        return True

    do_EOF = do_quit


def number_in(text: str, default: Any, kind: type) -> Any:
    try:
        value = kind(text) if text else default
    except ValueError:
        value = -1
    if value < 0 and text:
        raise Mistake(f"{text!r} is not a number")
    return value
