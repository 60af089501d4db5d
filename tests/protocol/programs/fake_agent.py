"""A stand-in for the tensor agent: speaks the wire protocol from canned data, and stops its thread in pydevd the way the real one does.

The adapter's tests need an agent that does exactly one thing at a time, on command; what the real one computes is tested elsewhere."""
import base64
import os
import struct
import sys
import threading
import time

import dvm_wire

SHAPE = [3, 4]
VALUES = [i / 4 for i in range(12)]
PROGRAM = 3
INSTRUCTIONS = 6


class FakeAgent:
    """One canned program of six instructions; `launch` runs it and stops where the adapter has asked for."""

    def __init__(self, path, line, sock=None):
        self.path, self.line = path, line
        self.lines, self.filters, self.instruction_points, self.watches = [], [], [], {}
        self.stopped_at = None
        self.leaving = False
        self.ready = threading.Event()  # breakpoints have been received
        self.gone = threading.Event()  # the stop is over
        self.received = []
        self.sock = sock or dvm_wire.connect()
        self.send(type="hello", token=os.environ.get("DVM_TOKEN", ""), pid=os.getpid(), python=list(sys.version_info[:2]), device="cpu")
        thread = threading.Thread(target=self.serve, name="fake-agent", daemon=True)
        thread.pydev_do_not_trace = thread.is_pydev_daemon_thread = True
        thread.start()

    def send(self, **message):
        try:
            dvm_wire.write_frame(self.sock, message)
        except OSError:
            assert self.leaving

    def serve(self):
        while True:
            try:
                message = dvm_wire.read_frame(self.sock)
            except (OSError, dvm_wire.WireError):
                message = None
            if message is None:
                if dvm_wire.launched() and not self.leaving:
                    os.kill(os.getpid(), 9)
                return
            number, command = message.pop("id"), message.pop("cmd")
            self.received.append((command, message))
            handler = getattr(self, "do_" + command, None)
            try:
                if handler is None:
                    raise ValueError(f"unknown command {command}")
                self.send(re=number, ok=True, **(handler(**message) or {}))
            except Exception as error:
                self.send(re=number, ok=False, error=f"{error}")
            if command == "breakpoints":
                self.ready.set()
            if command == "step":
                self.after_step()

    # ---- what is stopped where
    def frame(self, instruction, backward):
        return {"name": "h = x * 2", "path": self.path, "line": self.line, "column": 5, "endLine": self.line, "function": "step",
                "backward": backward, "program": PROGRAM, "programName": "step", "instruction": instruction, "instructions": INSTRUCTIONS,
                "area": 1, "areas": 2, "areaInstructions": [0, 1, 2], "opcode": "MUL", "ref": 70}

    def tensor(self, name, computed=True, ref=1):
        return {"ref": ref, "name": name, "shape": SHAPE, "dtype": "float32", "strides": [4, 1], "device": "cpu", "cls": "activation",
                "computed": computed, "place": {"path": self.path, "line": self.line, "function": "step", "backward": False},
                "summary": "f32[3,4] min 0 max 2.75 mean 1.38 std 0.863" if computed else "f32[3,4]", "bytes": 48}

    # ---- commands
    def do_breakpoints(self, lines):
        self.lines = lines
        return {"results": [{"id": p["id"], "verified": p["mode"] != "forward", "message": "instruction 2 of step"} for p in lines]}

    def do_instructionBreakpoints(self, items):
        self.instruction_points = items
        return {"results": [{"id": p["id"], "verified": p["instruction"] < INSTRUCTIONS,
                             "message": "" if p["instruction"] < INSTRUCTIONS else "past the end"} for p in items]}

    def do_configure(self, **settings):
        self.settings = settings

    def do_filters(self, conditions):
        self.filters = list(conditions)
        return {"refused": {name: "cannot be meant" for name, text in conditions.items() if text == "nonsense"}}

    def do_pythonStop(self, thread=None):
        frame = sys._current_frames().get(thread)
        while frame is not None and os.path.basename(frame.f_code.co_filename) != os.path.basename(self.path):
            frame = frame.f_back
        inside = frame is not None and frame.f_code.co_name == "step"
        return {"tensor": {**self.frame(None, False), "line": frame.f_lineno} if inside else None}

    def do_tensors(self):
        return {"tensors": [self.tensor("x"), self.tensor("h", computed=False, ref=2)]}

    def do_tensor(self, ref, slice=None, offset=0, maxBytes=0):
        data = struct.pack("<12f", *VALUES)
        return {**self.tensor("x", ref=ref), "stats": {"count": 12, "finite": 11, "zero": 1, "nan": 1, "pos_inf": 0, "neg_inf": 0,
                                                       "min": 0.0,
                                                       "max": 2.75, "mean": float("nan"), "std": float("inf")},
                "data": base64.b64encode(data[offset:offset + maxBytes]).decode()}

    def do_elements(self, ref, start, count):
        if ref == 3:
            return {"values": [str(v * 16 - 16) for v in range(start, start + count)], "total": 12}
        return {"values": [f"{v:g}" for v in VALUES[start:start + count]], "total": 12}

    def do_evaluate(self, expression, frame=None):
        if expression in ("x", "h"):
            return self.tensor(expression, computed=expression == "x", ref=1)
        if expression == "n":
            return {**self.tensor("n", ref=3), "dtype": "int32"}
        if expression == "slow":
            time.sleep(2)
        if expression == "n.sum()":
            return {"result": "-255"}
        if expression == "leave":
            threading.Timer(0.1, self.sock.shutdown, [2]).start()
            self.leaving = True
            return {"result": "bye"}
        if expression == "abs(x).max()":
            return {"result": "2.75"}
        raise ValueError(f"no tensor is named {expression!r} here")

    def do_evaluateMemory(self, ref, offset, count):
        data = struct.pack("<12f", *VALUES)[offset:offset + count]
        return {"data": base64.b64encode(data).decode(), "unreadable": count - len(data)}

    def do_write(self, ref, value, index=()):
        return {"tensor": {**self.tensor("x", ref=9), "touched": [ref]}, "values": [value]}

    def do_assign(self, expression, value):
        return {"tensor": {**self.tensor("x", ref=9), "touched": [1]}, "values": ["1"] * 4, "shape": SHAPE if expression == "x" else [4]}

    def do_writeMemory(self, ref, offset, data):
        return {"written": len(base64.b64decode(data)), "tensor": {**self.tensor("x", ref=9), "touched": [ref]}}

    def do_dataInfo(self, name, ref=None, index=()):
        return {"data": {"name": name, "part": "", "shape": SHAPE, "dtype": 1}}

    def do_dataBreakpoints(self, items):
        return {"results": [{"id": p["id"], "verified": True, "message": f"{p['name']}: written by instruction 2 of step"} for p in items]}

    def do_disassemble(self, program, offset, count):
        if program != PROGRAM:
            raise ValueError(f"there is no program {program}")
        return {"total": INSTRUCTIONS, "instructions": [
            {"index": i, "bytes": f"01 02 00 {i:02x}", "text": f"%{i} = MUL %0, %1", "file": self.path, "line": self.line + i // 3,
             "symbol": "step"}
            for i in range(offset, min(offset + count, INSTRUCTIONS))]}

    def do_programs(self):
        return {"programs": [{"id": PROGRAM, "name": "step", "backward": False, "launches": 5, "instructions": INSTRUCTIONS, "areas": 2,
                              "file": self.path, "line": self.line}]}

    def do_program(self, program, level):
        return {"text": f"{level} of {program}", "lineMap": []}

    def do_status(self):
        return {"device": "cpu", "devices": ["cpu"], "rank": 0, "programs": 1, "launches": 5, "selectorHitRate": 0.9, "reload": None,
                "step": 1}

    def do_watch(self, what, everyN, name, **where):
        self.watches[len(self.watches) + 101] = name
        return {"watchId": 100 + len(self.watches), "matched": [{"program": PROGRAM, "instruction": 2}], "message": ""}

    def do_unwatch(self, watchId):
        del self.watches[watchId]

    def do_memory(self, steps=None):
        buffers = [{"id": i, "name": f"t{i}", "class": "activation", "bytes": 1024 * i, "born": i * 10,
                    "freed": i * 10 + 25 if i < 4 else -1,
                    "address": 4096 * i, "reuses": 0, "step": 1} for i in range(1, 6)]
        return {"buffers": buffers, "peak": {"bytes": 12288, "at": 50, "place": {"path": self.path, "line": self.line}}, "copies": 0,
                "copiesAvoided": 3, "step": 1}

    def do_reload(self, path, settled, text=None):
        outcome = {"outcome": "applied", "step": 2, "reasons": [], "instructionsPatched": 1, "instructionsTotal": 6, "ms": 1.5,
                   "path": path}
        self.send(ev="reload", **outcome)
        return outcome

    def do_undoReload(self, path=None):
        outcome = {"outcome": "applied", "step": 3, "reasons": [], "instructionsPatched": 1, "instructionsTotal": 6, "ms": 1.0}
        return {**outcome, **({"path": path} if path else {})}

    def do_detach(self):
        self.lines, self.filters, self.instruction_points = [], [], []
        self.gone.set()

    def do_select(self, thread):
        self.selected = thread

    def do_go(self, thread):
        if thread != self.thread:
            raise ValueError(f"thread {thread} does not stand")
        self.gone.set()

    def do_step(self, kind):
        if self.stopped_at is None:
            raise ValueError("nothing is stopped")
        self.stopped_at += {"instruction": 1, "line": 3, "out": INSTRUCTIONS}[kind]

    def after_step(self):
        if self.stopped_at < INSTRUCTIONS:
            self.send(ev="vmstop", epoch=2, reason="step", bp=[], thread=self.thread, FRAME=self.frame(self.stopped_at, True), text="")
        else:
            self.stopped_at = None
            self.gone.set()
            self.send(ev="vmdone")

    # ---- the program's side
    def wanted(self):
        """(instruction, reason, breakpoint ids) of the next launch's stop, or None."""
        for point in self.lines:
            if point["mode"] != "forward" and point["line"] == self.line:
                return 2, "breakpoint", [point["id"]]
        for point in self.instruction_points:
            return point["instruction"], "instruction", [point["id"]]
        return (4, self.filters[0], []) if self.filters else None

    def launch(self):
        """Runs the canned program on the calling thread; a wanted stop suspends it in pydevd with the caller's frame on top."""
        wanted = self.wanted()
        if wanted is None:
            return
        self.stopped_at, reason, ids = wanted
        self.gone.clear()
        self.thread = threading.get_ident()
        text = "1 of 12 elements, first at [0, 3]" if reason in ("nan", "inf") else ""
        if "--second" in sys.argv:
            # Untraced, as the real engine's native code is: pydevd cannot stop this thread before it stops itself.
            sys.settrace(None)
            time.sleep(1)
        self.send(ev="vmstop", epoch=1, reason=reason, bp=ids, thread=self.thread, FRAME=self.frame(self.stopped_at, True), text=text)
        if "--late" in sys.argv:
            time.sleep(1.5)
        suspend(sys._getframe(1))
        self.gone.wait(10)


def suspend(frame):
    """Blocks the calling thread in pydevd's suspend loop with `frame` on top."""
    import pydevd
    from _pydevd_bundle.pydevd_comm_constants import CMD_SET_BREAK

    debugger = pydevd.get_global_debugger()
    if debugger is None:
        return
    thread = threading.current_thread()
    info = debugger.set_additional_thread_info(thread)
    info.is_tracing += 1
    try:
        debugger.set_suspend(thread, CMD_SET_BREAK, suspend_other_threads=True)
        debugger.do_wait_suspend(thread, frame, "line", None)
        if info.pydev_step_cmd != -1:
            debugger.enable_tracing()
    finally:
        info.is_tracing -= 1
