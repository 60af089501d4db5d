# outcome: applied
# keep: running = every()
# keep: first = next(running)
# check: first == 1 and list(running) == [2] and list(every()) == [1, 2, 3]
# undo: list(every()) == [1, 2]
# ---- before
def some():
    yield 1
    yield 2


def every():
    yield from some()
# ---- after
def some():
    yield 1
    yield 2


def every():
    yield from some()
    yield 3
