# outcome: refused
# reason: `calls.append(1)` was removed
# check: calls == [1]
# ---- before
calls = []
calls.append(1)


def scale(x):
    return x * 2
# ---- after
calls = []


def scale(x):
    return x * 2
