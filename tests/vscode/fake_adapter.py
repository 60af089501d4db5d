"""A stand-in for the debug adapter: DAP and the dvm/ messages over a made-up training loop, so that the extension is tested alone.

`python fake_adapter.py` serves stdio; `--listen` serves one client on a free port of 127.0.0.1 and prints the port first.
The loop takes a step every 10 ms and comes to the first breakpoint of the program on every fifth step. Watch names ask for a behaviour:
`bad` is refused, `nanny` turns NaN at step 8, `slow` has no values, everything else is a fading sine.
"""

import base64
import json
import math
import socket
import struct
import sys
import threading
import time

from dvm_adapter.memory_view import Log, view

SHAPES = {"h": [4, 3], "scores": [2, 4, 3], "loss": []}
PYTHON_FRAMES, LABEL = ("train_step", "<module>"), "── Python ──"
INSTRUCTIONS = ["LOAD x", "MATMUL x, w", "ADD %2, b", "MAXIMUM %3, 0", "REDUCE_SUM %4"]
BASE = 0x1000


def stats_of(values):
    finite = [v for v in values if math.isfinite(v)]
    mean = sum(finite) / len(finite) if finite else math.nan
    std = math.sqrt(sum((v - mean) ** 2 for v in finite) / len(finite)) if finite else math.nan
    histogram = [0] * 16
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    for v in finite:
        histogram[min(15, int((v - low) / ((high - low) or 1) * 16))] += 1
    nan = sum(math.isnan(v) for v in values)
    return {
        "count": len(values), "finite": len(finite), "zero": sum(v == 0 for v in values), "nan": nan,
        "pos_inf": values.count(math.inf), "neg_inf": values.count(-math.inf), "histogram": histogram,
        "min": low if finite else "NaN", "max": high if finite else "NaN", "mean": "NaN" if nan else mean, "std": "NaN" if nan else std,
    }  # fmt: skip


class Adapter:
    def __init__(self, reader, writer):
        self.reader, self.writer, self.lock = reader, writer, threading.Lock()
        self.seq = 0
        self.path, self.lines = "", []
        self.breakpoints: list[int] = []
        self.step, self.line = 0, 0
        self.watches: dict[int, dict] = {}
        self.watch_ids = 0
        self.device = "cpu"
        self.go, self.over = threading.Event(), threading.Event()
        self.reloads = 0
        self.stops: set[tuple[int, int]] = set()
        self.asked = 0  # how often for the programs

    # ---- messages ------------------------------------------------------------------------------------------------------------------
    def send(self, message):
        with self.lock:
            self.seq += 1
            body = json.dumps({"seq": self.seq, **message}, allow_nan=False).encode()
            self.writer.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            self.writer.flush()

    def event(self, event, **body):
        self.send({"type": "event", "event": event, "body": body})

    def serve(self):
        while request := self.read():
            name = request["command"]
            handler = getattr(self, "on_" + name.replace("/", "_"), None)
            answer = {"type": "response", "request_seq": request["seq"], "command": name, "success": True}
            after = None
            try:
                if handler is None:
                    raise ValueError(f"unknown request {name}")
                body = handler(request.get("arguments") or {})
                body, after = body if isinstance(body, tuple) else (body, None)
                answer["body"] = body or {}
            except ValueError as error:
                answer |= {"success": False, "message": str(error)}
            self.send(answer)
            if after:
                after()
            if name == "disconnect":
                return

    def read(self):
        length = 0
        while (header := self.reader.readline().strip()) or not length:
            if not header:
                return None
            name, _, value = header.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        return json.loads(self.reader.read(length))

    # ---- the made-up program ---------------------------------------------------------------------------------------------------------
    def run(self):
        while not self.over.is_set():
            self.go.wait()
            time.sleep(0.01)
            self.step += 1
            self.event("dvm/step", step=self.step, launches=3 * self.step)
            due = [item for item in list(self.watches.items()) if self.step % item[1]["everyN"] == 0]
            if due:
                self.event("dvm/snapshots", snapshots=[self.snapshot(*item) for item in due])
            if self.breakpoints and self.step % 5 == 0:
                self.line = min(self.breakpoints)
                self.go.clear()
                self.event("stopped", reason="breakpoint", threadId=1, allThreadsStopped=True, description="Paused on tensor line")
            elif self.step >= 2000:
                self.event("terminated")
                return

    def values(self, name):
        shape = SHAPES.get(name.split("[")[0], SHAPES["h"])
        count = math.prod(shape)
        values = [math.sin(i + self.step / 6) * 20 / (20 + self.step) for i in range(count)]
        if name == "nanny" and self.step >= 8:
            values[5:8] = [math.nan, math.inf, math.nan]
        return shape, values

    def snapshot(self, watch_id, watch):
        shape, values = self.values(watch["name"])
        common = {
            "watchId": watch_id,
            "name": watch["name"],
            "step": self.step,
            "shape": shape,
            "dtype": "float32",
            "program": 1,
            "instruction": 2,
        }
        if watch["name"] == "slow":
            return common | {"placeholder": True, "reason": "copy timed out (100 ms): shape only"}
        if watch["asked"].get("keep"):
            watch["kept"] = [*watch["kept"], {"snapshot": self.step, "step": self.step, "device": self.device}][-watch["asked"]["keep"] :]
            return common | {"snapshot": self.step}
        return common | {"stats": stats_of(values), "backward": watch["name"].startswith("grad(")}

    # ---- DAP -------------------------------------------------------------------------------------------------------------------------
    def on_initialize(self, _):
        modes = [{"mode": m, "label": m, "appliesTo": ["source"]} for m in ("forward", "backward", "both")]
        return {
            "supportsConfigurationDoneRequest": True, "supportsDisassembleRequest": True, "supportsSteppingGranularity": True,
            "supportsInstructionBreakpoints": True, "supportsEvaluateForHovers": True, "supportsReadMemoryRequest": True,
            "breakpointModes": modes,
            "exceptionBreakpointFilters": [{"filter": f, "label": f"First {f}"} for f in ("nan", "inf")],
        }, lambda: self.event("initialized")  # fmt: skip

    def on_launch(self, arguments):
        self.path = arguments["program"]
        with open(self.path, encoding="utf-8") as source:
            self.lines = source.read().splitlines()
        self.device = arguments.get("dvm", {}).get("device", "cpu")

    def on_setBreakpoints(self, arguments):
        lines = [b["line"] for b in arguments.get("breakpoints", [])]
        if arguments["source"].get("path") == self.path:
            self.breakpoints = lines
        return {"breakpoints": [{"id": n, "verified": True, "line": n, "message": "instruction 2 of 5, area 1"} for n in lines]}

    def on_setExceptionBreakpoints(self, _):
        return {}

    on_setInstructionBreakpoints = on_setFunctionBreakpoints = lambda self, _: {"breakpoints": []}

    def on_configurationDone(self, _):
        return {}, lambda: (self.go.set(), threading.Thread(target=self.run, daemon=True).start())

    def on_threads(self, _):
        return {"threads": [{"id": 1, "name": "MainThread"}]}

    def on_stackTrace(self, _):
        source = {"name": self.path.rpartition("/")[2], "path": self.path}
        text = self.lines[self.line - 1].strip() if self.line else ""
        frames = [
            {"id": 1, "name": text, "line": self.line, "column": 1, "source": source, "instructionPointerReference": hex(BASE + 2 * 16)}
        ]
        frames.append({"id": 2, "name": LABEL, "line": 0, "column": 0, "presentationHint": "label"})
        frames += [{"id": 3 + i, "name": n, "line": self.line, "column": 1, "source": source} for i, n in enumerate(PYTHON_FRAMES)]
        return {"stackFrames": frames, "totalFrames": len(frames)}

    def on_scopes(self, arguments):
        tensors = {"name": "Tensors", "variablesReference": 1, "expensive": False}
        locals_ = {"name": "Locals", "variablesReference": 2, "expensive": False, "presentationHint": "locals"}
        return {"scopes": [tensors, locals_] if arguments["frameId"] == 1 else [locals_]}

    def summary(self, name):
        shape, values = self.values(name)
        figures = {name: f"{value:.3g}" for name, value in stats_of(values).items() if name in ("min", "max", "mean", "std")}
        return "  ".join([f"f32[{','.join(map(str, shape))}]", *(f"{name} {figures[name]}" for name in ("min", "max", "mean", "std"))])

    def on_variables(self, arguments):
        reference = arguments["variablesReference"]
        if reference == 1:
            rows = [(name, self.summary(name), 10 + i) for i, name in enumerate(SHAPES)] + [("y", "not yet computed", 0)]
        elif reference == 2:
            rows = [("step", str(self.step), 0), ("self", "<model.Net object>", 20)]
        else:
            rows = [("shape", "[4, 3]", 0), ("dtype", "float32", 0), ("device", self.device, 0)]
        return {
            "variables": [
                {"name": n, "value": v, "variablesReference": r, "evaluateName": n, "memoryReference": hex(r)} for n, v, r in rows
            ]
        }

    def on_evaluate(self, arguments):
        name = arguments["expression"]
        if name not in SHAPES:
            raise ValueError(f"name '{name}' is not defined")
        return {"result": self.summary(name), "variablesReference": 0}

    def on_disassemble(self, arguments):
        first = (int(arguments["memoryReference"], 16) + arguments.get("offset", 0) - BASE) // 16 + arguments.get("instructionOffset", 0)
        rows = []
        for i in range(first, first + arguments["instructionCount"]):
            known = 0 <= i < len(INSTRUCTIONS)
            row = {"address": hex(max(0, BASE + 16 * i)), "instruction": INSTRUCTIONS[i] if known else "??"}
            if known:
                row |= {"instructionBytes": f"{i:02x} 02 03 04", "location": {"path": self.path}, "line": max(1, self.line)}
            else:
                row["presentationHint"] = "invalid"
            rows.append(row)
        return {"instructions": rows}

    def on_continue(self, _):
        return {"allThreadsContinued": True}, self.go.set

    def step_line(self, arguments):
        lines = 2 if arguments.get("granularity") == "tile" else 1  # so that it can be told which it was

        def stop():
            self.line = min(self.line + lines, len(self.lines))
            self.event("stopped", reason="step", threadId=1, allThreadsStopped=True)

        return {}, stop

    on_next = on_stepIn = on_stepOut = step_line

    def on_pause(self, _):
        self.go.clear()
        return {}, lambda: self.event("stopped", reason="pause", threadId=1, allThreadsStopped=True)

    def on_disconnect(self, _):
        self.over.set()
        self.go.set()

    # ---- dvm/ ------------------------------------------------------------------------------------------------------------------------
    def on_dvm_status(self, _):
        devices = ["cpu", "npu-sim:910b", "npu-sim:950"]
        return {
            "device": self.device,
            "devices": devices,
            "rank": None,
            "step": self.step,
            "programs": 2,
            "launches": 3 * self.step,
            "selectorHitRate": 0.97,
            "watches": [w["asked"] for w in self.watches.values()],
        }

    def on_dvm_device(self, arguments):
        self.device = arguments["device"]
        return {"device": self.device, "switched": True}

    def on_dvm_watch(self, arguments):
        if arguments.get("expression") == "bad":
            raise ValueError("no instruction makes bad")
        self.watch_ids += 1
        self.watches[self.watch_ids] = {"name": arguments["name"], "everyN": arguments["everyN"], "asked": arguments, "kept": []}
        return {"watchId": self.watch_ids, "matched": [{"program": 1, "instruction": 2}], "message": ""}

    def on_dvm_unwatch(self, arguments):
        if self.watches.pop(arguments["watchId"], None) is None:
            raise ValueError(f"no watch {arguments['watchId']}")

    def named(self, arguments):
        watch = self.watches.get(arguments.get("watchId"), {})
        return arguments.get("expression") or watch.get("name", "h"), watch

    def plane(self, shape, values):
        rows, columns = ([1, 1, *shape])[-2:]
        data = base64.b64encode(struct.pack(f"<{rows * columns}f", *values[: rows * columns])).decode()
        axes = [len(shape) - 2 if len(shape) > 1 else -1, len(shape) - 1]
        return {
            "axes": axes, "indices": [0] * len(shape), "rows": [0, rows], "columns": [0, columns], "height": rows, "width": columns,
            "cell": [1, 1], "skip": [1, 1], "f64": False, "data": data,
        }  # fmt: skip

    def on_dvm_view(self, arguments):
        name, watch = self.named(arguments)
        shape, values = self.values(name)
        place = {"path": self.path, "line": self.line, "function": "train_step", "backward": False}
        told = {"name": name, "shape": shape, "dtype": "float32", "device": self.device, "place": place}
        if watch:
            told |= {"kept": watch["kept"], "snapshot": self.step, "step": self.step}
        if arguments.get("texts"):
            told["texts"] = [f"{value:.6g}" for value in values]
        return told | {"plane": self.plane(shape, values)}

    def on_dvm_viewStats(self, arguments):
        return {"stats": stats_of(self.values(self.named(arguments)[0])[1])}

    def on_dvm_programs(self, _):
        made = {
            "name": "train_step",
            "backward": False,
            "launches": self.step,
            "instructions": 5,
            "areas": 2,
            "file": self.path,
            "line": 4,
        }
        made |= {"segments": 1, "inputs": 2, "shapes": ["f32[2…4,3]"], "ns": 5380}
        figures = {"launches": 200, "shapes": 2, "hits": 199, "misses": 1, "own_us": 400.0, "kernels_us": 676.0, "waiting_us": 0.0}
        advice = {"verdict": "pays", "why": "fused code", "do": "keep it captured", "notes": ["a note"], "figures": figures}
        self.asked += 1
        programs = [{"id": 1, **made}, {"id": 2, **made, "name": "train_step", "backward": True}]
        return {"programs": programs, "advice": {"train_step": advice}}

    def area_rows(self, arguments):
        """Two areas; of program 2 the second has 10,000 instructions."""
        sizes = [3, 10_000 if arguments["id"] == 2 else 2]
        if arguments.get("area") is None:
            common = {"reason": "nothing more to fuse", "tiles": 4, "tileRows": 8, "tileCols": 64, "ns": 2690}
            areas = [{"index": i, "kind": "vector", "stack": [i], "instructions": n, **common} for i, n in enumerate(sizes)]
            return {"areas": areas, "noWork": 1}
        first = {0: 0, 1: 3, -1: sum(sizes)}[arguments["area"]] + arguments.get("offset", 0)
        place = {"file": self.path, "function": "train_step", "backward": arguments["id"] == 2, "foldedInto": -1}
        rows = [
            {"index": i, "area": arguments["area"], "text": f"%{i + 1} = MUL(%i0, 2.0) f32[4,3]", "name": "h" if i == 0 else "", **place}
            | {"line": 9 + i % 3, "breakpoint": (arguments["id"], i) in self.stops}
            for i in range(first, first + arguments["count"])
        ]
        return {"instructions": rows, "total": len(rows)}

    def on_dvm_line(self, arguments):
        programs = self.on_dvm_programs({})["programs"][:1] if arguments["line"] == 9 else []
        return {"programs": [{**p, "found": [2, 3]} for p in programs], "line": arguments["line"], "endLine": arguments["line"]}

    def on_dvm_breakInstruction(self, arguments):
        stop = arguments["program"], arguments["instruction"]
        self.stops = self.stops | {stop} if arguments["on"] else self.stops - {stop}
        return {"message": "", "breakpoints": [{"program": p, "instruction": i} for p, i in sorted(self.stops)]}

    def on_dvm_program(self, arguments):
        if arguments["level"] == "areas":
            return self.area_rows(arguments)
        text = "\n".join(f"%{i} = {t}  ; train.py:{7 + i}" for i, t in enumerate(INSTRUCTIONS))
        lines = [{"line": i + 2, "file": self.path, "sourceLine": 7 + i, "instruction": i, "area": 0} for i in range(len(INSTRUCTIONS))]
        return {"text": f"program {arguments['id']} level {arguments['level']}\n{text}\n", "lineMap": lines}

    def on_dvm_memoryView(self, arguments):
        buffers = [
            {"id": i, "name": f"%{i}", "class": "activation", "bytes": 1 << (10 + i % 4), "born": i, "freed": i + 5, "address": 4096 * i}
            for i in range(20)
        ]
        log = Log.of({"buffers": buffers, "copies": 1, "copiesAvoided": 7, "step": self.step})
        first, last = arguments.get("from") or 0, arguments.get("to") or 25
        return view(log, int(first), int(last))

    def on_dvm_reload(self, arguments):
        with open(arguments["path"], encoding="utf-8") as source:
            lines = source.read().splitlines()
        refused = [i for i, line in enumerate(lines, 1) if "REFUSE" in line]
        common = {"path": arguments["path"], "step": self.step, "ms": 1.83, "instructionsTotal": 41}
        if refused:
            reason = f"{arguments['path']}:{refused[0]}: the result's shape would change from [4, 3] to [4, 5]"
            answer = common | {"outcome": "refused", "reasons": [reason], "instructionsPatched": 0, "changes": []}
        else:
            self.reloads += 1
            change = {"function": "train_step", "what": "constant", "old": 0.1, "new": 0.2}
            answer = common | {"outcome": "applied", "reasons": [], "instructionsPatched": 3, "changes": [change]}
        return answer, lambda: self.event("dvm/reload", **answer)

    def on_dvm_undoReload(self, _):
        if not self.reloads:
            raise ValueError("nothing to undo")
        self.reloads -= 1
        answer = {
            "outcome": "applied",
            "undone": True,
            "path": self.path,
            "step": self.step,
            "reasons": [],
            "instructionsPatched": 3,
            "instructionsTotal": 41,
            "ms": 0.9,
            "changes": [],
        }
        return answer, lambda: self.event("dvm/reload", **answer)

    def on_dvm_reloadListings(self, _):
        before = ["%i0 = input f32[4,3]", "%1 = MUL(%i0, 0.1) f32[4,3]  ; h"]
        program = {"program": 1, "name": "train_step", "backward": False, "instructionsPatched": 1, "instructionsTotal": 1, "listed": True}
        return {"path": self.path, "step": self.step, "programs": [{**program, "before": before, "now": [before[0], "%1 = EXP(%i0)"]}]}


def main():
    if "--listen" not in sys.argv:
        Adapter(sys.stdin.buffer, sys.stdout.buffer).serve()
        return
    with socket.create_server(("127.0.0.1", 0)) as server:
        print(server.getsockname()[1], flush=True)
        while True:
            client, _ = server.accept()
            with client, client.makefile("rb") as reader, client.makefile("wb") as writer:
                try:
                    Adapter(reader, writer).serve()
                except (ConnectionError, ValueError):
                    pass


if __name__ == "__main__":
    main()
