# outcome: applied
# reason: a generator that `loop` has made of `batches` (line 11) goes on with the code it began with
# keep: running = Call()
# check: running.end() == [1, 1] and Call().end() == [2, 2]
# undo: Call().end() == [1, 1]
# ---- before
import threading


def batches():
    yield 1
    yield 1


def loop(begun, gate):
    seen = []
    for batch in batches():
        begun.set()
        gate.wait()
        seen.append(batch)
    return seen


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


def batches():
    yield 2
    yield 2


def loop(begun, gate):
    seen = []
    for batch in batches():
        begun.set()
        gate.wait()
        seen.append(batch)
    return seen


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
