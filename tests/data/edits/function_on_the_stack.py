# outcome: applied
# reason: `loop` is running: that call goes on with the code it began with
# keep: running = Call(loop)
# check: running.end() == 1 and Call(loop).end() == 2
# undo: Call(loop).end() == 1
# ---- before
def loop(begun, gate):
    begun.set()
    gate.wait()
    return 1
# ---- after
def loop(begun, gate):
    begun.set()
    gate.wait()
    return 2
