# outcome: applied
# reason: `RATE` was read by `loop`, which is running (line 8); what that made keeps the value it read
# keep: running = Call()
# check: running.end() == (0.5, [0.25]) and Call().end() == (0.25, [0.25])
# undo: Call().end() == (0.5, [0.5])
# ---- before
import threading

RATE = 0.5


def loop(begun, gate):
    scale = 1
    rate = RATE * scale
    seen = []
    for _ in range(1):
        begun.set()
        gate.wait()
        seen.append(RATE)
    return rate, seen


class Call:
    def __init__(self):
        self.begun, self.gate, self.result = threading.Event(), threading.Event(), None
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        self.begun.wait()

    def run(self):
        self.result = loop(self.begun, self.gate)

    def end(self):
        self.gate.set()
        self.thread.join()
        return self.result
# ---- after
import threading

RATE = 0.25


def loop(begun, gate):
    scale = 1
    rate = RATE * scale
    seen = []
    for _ in range(1):
        begun.set()
        gate.wait()
        seen.append(RATE)
    return rate, seen


class Call:
    def __init__(self):
        self.begun, self.gate, self.result = threading.Event(), threading.Event(), None
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        self.begun.wait()

    def run(self):
        self.result = loop(self.begun, self.gate)

    def end(self):
        self.gate.set()
        self.thread.join()
        return self.result
