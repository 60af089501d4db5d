# outcome: applied
# check: (first(), second()) == (1, 5) and [f() for f in held] == [1, 7]
# undo: (first(), second()) == (1, 1) and [f() for f in held] == [1, 2]
# ---- before
first = lambda: 1; second = lambda: 1


def make():
    return [lambda: 1, lambda: 2]


held = make()
# ---- after
first = lambda: 1; second = lambda: 5


def make():
    return [lambda: 1, lambda: 7]


held = make()
