# outcome: applied
# keep: running = rows(3)
# keep: first = next(running)
# check: list(running) == [1, 2] and list(rows(3)) == [0, 10, 20]
# undo: list(rows(3)) == [0, 1, 2]
# ---- before
def rows(n):
    for i in range(n):
        yield i
# ---- after
def rows(n):
    for i in range(n):
        yield i * 10
