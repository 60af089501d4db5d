"""`dvm debug SCRIPT`: the debugger in a terminal, for machines without an editor."""
from __future__ import annotations

import argparse
import io
import os
import re
import signal
import sys
from typing import Any

from .client import RequestFailed
from .config import HOT_RELOAD
from .terminal_prompt import Prompt, number_in
from .terminal_session import ANSWER, Debuggee, Ended, Mistake, told_by
from .terminal_text import breakpoint_line, frame_line, memory_lines, program_line, size, source_lines, watch_line

ROWS = 8  # of a tensor that is printed
LINES = 24  # of a value of Python's
TIMELINES = {"torch-snapshot": "for pytorch.org/memory_viz", "perfetto": "for ui.perfetto.dev", "html": "for any browser"}
WIDEST = 120  # characters of a variable
WITH_VALUE = ("--device", "--python", "--hot-reload", "--pid")


class Terminal(Prompt):
    """The commands for what stands still: where to stop, what there is at a stop, the tensor engine."""

    # ---- where to stop
    def do_break(self, arg: str) -> None:
        """break (b) [FILE:]LINE [if CONDITION] [mode forward|backward|both]: stop at a line, at its gradient, or at both"""
        self._break(arg, once=False)

    def do_tbreak(self, arg: str) -> None:
        """tbreak [FILE:]LINE ...: as break, for one stop"""
        self._break(arg, once=True)

    def _break(self, arg: str, once: bool) -> None:
        if not arg:
            return self.do_breakpoints("")
        path, point, replaced = self.program.add_point(arg, once)
        self.say(breakpoint_line(path, point))
        if replaced:
            self.say(f"replaces {breakpoint_line(path, replaced)}")

    def do_clear(self, arg: str) -> None:
        """clear (cl) NUMBER | FILE:LINE | all: take breakpoints away"""
        number = int(arg) if arg.isdigit() else None
        path, line = ("", 0) if number is not None or arg == "all" else self.program.place(arg)
        gone = 0
        for file, points in list(self.program.points.items()):
            left = {at: point for at, point in points.items()
                    if not (arg == "all" or point["id"] == number or file == path and line in (at, point.get("at")))}
            if len(left) < len(points):
                gone += len(points) - len(left)
                self.program.set_points(file, left)
        if not gone:
            raise Mistake(f"there is no breakpoint {arg}" if arg != "all" else "there are no breakpoints")
        self.say(f"{gone} cleared")

    def do_breakpoints(self, arg: str) -> None:
        """breakpoints: all of them, and the filters"""
        lines = [breakpoint_line(path, point) for path, points in self.program.points.items() for point in points.values()]
        lines += [f"filter {name} {condition}".rstrip() for name, condition in self.program.filters.items()]
        for line in lines or ["none"]:
            self.say(line)

    def do_filter(self, arg: str) -> None:
        """filter NAME [CONDITION]: stop at exceptions or numbers: nan, inf, overflow, range, zeros, ...; without a name: all there are"""
        name, _, condition = arg.partition(" ")
        if not name:
            wide = max(map(len, self.program.known_filters))
            for known, meaning in self.program.known_filters.items():
                on = known in self.program.filters
                self.say(f"{known:<{wide}}  {'on ' if on else 'off'}  {self.program.filters.get(known) or meaning}")
            return
        if name not in self.program.known_filters:
            raise Mistake(f"there is no filter {name!r}; there are {', '.join(self.program.known_filters)}")
        self.program.set_filters({**self.program.filters, name: condition.strip()})
        self.say(f"filter {name} {condition}".rstrip())

    def do_unfilter(self, arg: str) -> None:
        """unfilter NAME: no longer stop there"""
        if arg not in self.program.filters:
            raise Mistake(f"the filter {arg!r} is not on")
        self.program.set_filters({name: condition for name, condition in self.program.filters.items() if name != arg})

    # ---- what there is at a stop
    def do_where(self, arg: str) -> None:
        """where (w, bt): the stack: the tensor line, then Python's frames"""
        self.program.stopped()
        number = 0
        for frame in self.program.frames:
            if frame.get("presentationHint") == "label":
                self.say(f"    {frame['name']}")
                continue
            self.say(frame_line(frame, "▸" if number == self.program.frame else " ", number))
            number += 1

    def do_frame(self, arg: str) -> None:
        """frame (f) N: look at frame N of where"""
        frames = self.program.real_frames()
        number = number_in(arg, self.program.frame, int)
        if number >= len(frames):
            raise Mistake(f"there are frames 0 to {len(frames) - 1}, not {number}")
        self.program.frame, self.listed = number, 0
        self.say(frame_line(frames[number], "▸", number))

    def do_tensors(self, arg: str) -> None:
        """tensors (t): the tensors of the program we stand in, operands first"""
        tensors = self.tensors()
        if not tensors:
            raise Mistake("Python stands outside of a captured function: there are no tensors of a program; print NAME shows an array")
        wide = max(len(tensor["name"]) for tensor in tensors)
        for tensor in tensors:
            self.say(f"  {tensor['name']:<{wide}}  {tensor['value']}")

    def do_locals(self, arg: str) -> None:
        """locals: Python's names in this frame"""
        scopes = self.program.client.scopes(self.program.current()["id"])
        scope = next((scope for name, scope in scopes.items() if name.startswith("Locals")), None)
        if scope is None:
            raise Mistake("there are no locals in this frame")
        for variable in self.program.client.variables(scope["variablesReference"]):
            if not variable["name"].endswith(" variables"):
                self.say(f"  {variable['name']} = {_cut(variable['value'])}")

    def do_print(self, arg: str) -> None:
        """print (p) EXPRESSION: a tensor with its statistics and first values, or Python's value in this frame"""
        if not arg:
            raise Mistake("print what? print EXPRESSION")
        client = self.program.client
        told = client.request("evaluate", timeout=ANSWER, expression=arg, frameId=self.program.current()["id"], context="repl")
        lines = str(told.get("result", "")).splitlines() or [""]
        for shown in lines[:LINES]:
            self.say(shown)
        if len(lines) > LINES:
            self.say(f"    …  {len(lines) - LINES} more lines")
        if not told.get("memoryReference"):
            return  # no tensor, or one without values
        children = {child["name"]: child for child in client.variables(told["variablesReference"])}
        for line in client.variables(children["statistics"]["variablesReference"]):
            self.say(f"  statistics  {line['value']}")
        if reference := children["values"]["variablesReference"]:
            for row in client.variables(reference, filter="indexed", start=0, count=ROWS):
                self.say(f"  {row['name']:>3}  {row['value']}")
            if (count := children["values"].get("indexedVariables", 0)) > ROWS:
                self.say(f"    …  {count - ROWS} more")
        self.say(f"  made at  {children['made at']['value']}")

    def do_list(self, arg: str) -> None:
        """list (l) [LINE]: the source around the line, then what follows"""
        frame = self.program.current()
        middle = number_in(arg, self.listed or frame["line"], int)
        lines = source_lines(frame, middle - 5, middle + 5)
        if not lines:
            raise Mistake("there is no more source here")
        for line in lines:
            self.say(line)
        self.listed = middle + 11

    # ---- the tensor engine
    def do_watch(self, arg: str) -> None:
        """watch EXPRESSION [every N]: statistics of a tensor at each N-th step; watches shows the latest"""
        match = re.fullmatch(r"(.+?)(?:\s+every\s+(\d+))?", arg.strip())
        if not match:
            raise Mistake("watch EXPRESSION [every N]")
        told = self.program.watch(match[1], int(match[2] or 1))
        self.say(f"watch {told['watchId']}: {told['name']}" + (f"  ({told['message']})" if told.get("message") else ""))

    def do_unwatch(self, arg: str) -> None:
        """unwatch NUMBER"""
        number = number_in(arg, -1, int)
        if number not in self.program.watches:
            raise Mistake(f"there is no watch {arg or '?'}; watches lists them")
        self.program.client.request("dvm/unwatch", watchId=number)
        del self.program.watches[number]

    def do_watches(self, arg: str) -> None:
        """watches: the latest statistics of each"""
        for watch in self.program.watches.values():
            self.say(watch_line(watch))
        if not self.program.watches:
            self.say("none")

    def do_dis(self, arg: str) -> None:
        """dis [PROGRAM [graph|tensor|tile]]: the instructions around the stop, or a whole program"""
        client = self.program.client
        if arg:
            number, _, level = arg.partition(" ")
            told = client.request("dvm/program", timeout=ANSWER, id=number_in(number, 0, int), level=level.strip() or "tensor")
            return self.say(told["text"].rstrip())
        here = self.program.real_frames()[0].get("instructionPointerReference")
        if not here:
            raise Mistake("this stop is not in a tensor program; dis PROGRAM shows one, programs lists them")
        listing = client.request("disassemble", memoryReference=here, instructionOffset=-5, instructionCount=11)
        for row in listing["instructions"]:
            if row["instruction"] and (row.get("presentationHint") != "invalid" or row["address"] == here):
                self.say(f"{'▸' if row['address'] == here else ' '} {row['address']}  {row['instruction']}")

    def do_programs(self, arg: str) -> None:
        """programs: the tensor programs so far"""
        for told in self.program.client.request("dvm/programs", timeout=ANSWER)["programs"]:
            self.say(program_line(told))

    def do_memory(self, arg: str) -> None:
        """memory: the peak, the copies, and what was alive at the peak"""
        for line in memory_lines(self.program.client.request("dvm/memory", timeout=ANSWER)):
            self.say(line)

    def do_export(self, arg: str) -> None:
        """export torch-snapshot|perfetto|html FILE: the memory timeline as a file of PyTorch's memory viewer, of Perfetto, or a page"""
        name, _, path = arg.partition(" ")
        if name not in TIMELINES or not path.strip():
            raise Mistake(f"export {'|'.join(TIMELINES)} FILE")
        told = self.program.client.request("dvm/export", timeout=ANSWER, format=name, path=os.path.expanduser(path.strip()))
        self.say(f"{told['path']}: {size(told['bytes'])}, {TIMELINES[name]}")

    def do_reload(self, arg: str) -> None:
        """reload FILE: bring a saved file into the running program (a save does so by itself)"""
        self.program.client.request("dvm/reload", timeout=ANSWER, path=self.program.file(arg))
        self.program.renew()  # the outcome is said by its event, which comes first

    def do_undo(self, arg: str) -> None:
        """undo [FILE]: take back the last edit that was brought in, of the file or of all"""
        path = {"path": self.program.file(arg)} if arg else {}
        self.program.client.request("dvm/undoReload", timeout=ANSWER, **path)
        self.program.renew()

    def do_device(self, arg: str) -> None:
        """device [NAME]: which device is in use, or use another"""
        client = self.program.client
        if not arg:
            told = client.request("dvm/status", timeout=ANSWER)
            return self.say(f"{told['device']}; there are {', '.join(map(str, told['devices']))}" if told.get("connected") else
                            "the tensor engine is not running in this program yet")
        told = client.request("dvm/device", timeout=ANSWER, device=arg)
        later = " when the captured calls that run have ended" if told.get("pending") else ""
        self.say(f"device {told.get('pending') or told['device']}{later}")


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="dvm debug", usage="dvm debug [OPTIONS] SCRIPT | -m MODULE [ARGS] | --pid PID",
                                     description="Debug a script in the terminal: Python and tensor programs.")
    parser.add_argument("-m", dest="module", metavar="MODULE", help="a module instead of a script")
    parser.add_argument("--pid", type=int, help="a program that runs already: attach to it, and leave it running")
    parser.add_argument("--device", help="device of all launches (default: cpu; with --pid: the one in use)")
    parser.add_argument("--stop-on-entry", action="store_true", help="begin, and stop at the first line")
    parser.add_argument("--python", default=sys.executable, help="the program's interpreter (default: this one)")
    parser.add_argument("--hot-reload", choices=HOT_RELOAD, default="onSave", help="what a save of a source does (default: onSave)")
    ours, rest = split(sys.argv[1:] if arguments is None else arguments)
    options = parser.parse_args(ours)
    script = [] if options.module else rest[:1]
    engine = {**({"device": options.device} if options.device else {}), "hotReload": options.hot_reload}
    if options.pid is not None:
        if script or options.module or options.stop_on_entry:
            parser.error("--pid debugs a program that runs: nothing else to start, and nowhere to enter")
        return debug({"request": "attach", "processId": options.pid, "cwd": os.getcwd(), "subProcess": False, "dvm": engine})
    if not script and not options.module:
        parser.error("what is to be debugged? dvm debug SCRIPT [ARGS]")
    if script and not os.path.isfile(script[0]):
        parser.error(f"there is no script {script[0]!r}")
    what = {"module": options.module} if options.module else {"program": os.path.abspath(script[0])}
    # Child processes run free: there is one prompt, and a child that waited for a debugger would wait for ever.
    return debug({**what, "args": rest[len(script):], "cwd": os.getcwd(), "python": [options.python], "subProcess": False,
                  "stopOnEntry": options.stop_on_entry, "dvm": engine})


def split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Our options, and from the script on (behind `-m MODULE`) what is the program's, whatever it looks like."""
    at = 0
    while at < len(arguments) and arguments[at].startswith("-"):
        if arguments[at] == "-m":
            return arguments[:at + 2], arguments[at + 2:]
        at += 2 if arguments[at] in WITH_VALUE else 1
    return arguments[:at], arguments[at:]


def debug(arguments: dict[str, Any]) -> int:
    """One session at the prompt; gives the program's exit code, or 0 where the user has ended it."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without the sign, or a program's half of one, is no reason to end
    program = Debuggee(arguments, lambda text: print(text, flush=True))
    terminal = Terminal(program)

    def interrupted(number: int, frame: Any) -> None:
        if not program.waiting:
            raise KeyboardInterrupt
        program.interrupt()

    def ended(number: int, frame: Any) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGINT, interrupted)
    for name in ("SIGTERM", "SIGHUP"):
        if number := getattr(signal, name, None):
            signal.signal(number, ended)
    try:
        try:
            program.prepare()
        except (RequestFailed, TimeoutError, Ended) as error:
            print(f"dvm: {told_by(error)}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("dvm: interrupted before the program was there", file=sys.stderr)
            return 130
        if not arguments.get("stopOnEntry") or not terminal.onecmd("run"):
            _loop(terminal)
        return terminal.code
    except BrokenPipeError:  # whoever read what we say has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # nothing is left running, whatever is pressed meanwhile
        program.close()


def _loop(terminal: Terminal) -> None:
    while True:
        try:
            return terminal.cmdloop()
        except KeyboardInterrupt:  # at the prompt: the line is thrown away
            print("interrupted", flush=True)


if __name__ == "__main__":
    sys.exit(main())
