# outcome: applied
# reason: `loop` is running: that call goes on with the code it began with
# keep: running = Call()
# check: running.end() == 1 and Call().end() == 2
# undo: Call().end() == 1
# ---- before
import threading


def loop(begun, gate):
    begun.set()
    gate.wait()
    return 1


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


def loop(begun, gate):
    begun.set()
    gate.wait()
    return 2


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
