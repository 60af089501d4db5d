# outcome: applied
# check: list(rows(3)) == [0, 10, 20] and running.gi_code != rows.__code__
# ---- before
def rows(n):
    for i in range(n):
        yield i


running = rows(3)
next(running)
# ---- after
def rows(n):
    for i in range(n):
        yield i * 10


running = rows(3)
next(running)
