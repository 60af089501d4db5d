# outcome: applied
# reason: `RATE` was read by `loop`, which is running (line 6); what that made keeps the value it read
# keep: running = Call(loop)
# check: running.end() == (0.5, [0.25]) and Call(loop).end() == (0.25, [0.25])
# undo: Call(loop).end() == (0.5, [0.5])
# ---- before
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
# ---- after
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
