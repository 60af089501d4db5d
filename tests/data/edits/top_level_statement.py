# outcome: refused
# reason: line 2: `calls.append(2)` is top-level code, which is never run again
# check: calls == [1] and scale(2) == 4
# ---- before
calls = []
calls.append(1)


def scale(x):
    return x * 2
# ---- after
calls = []
calls.append(2)


def scale(x):
    return x * 3
