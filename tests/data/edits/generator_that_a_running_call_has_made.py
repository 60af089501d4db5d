# outcome: applied
# reason: a generator that `loop` has made of `batches` (line 8) goes on with the code it began with
# keep: running = Call(loop)
# check: running.end() == [1, 1] and Call(loop).end() == [2, 2]
# undo: Call(loop).end() == [1, 1]
# ---- before
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
# ---- after
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
