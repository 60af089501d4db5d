# outcome: applied
# reason: step constant 0.9 -> 0.95
# reason: step constant 0.1 -> 0.01
# check: step(1.0, 1.0) == 0.95 * 1.0 + 0.01
# undo: step(1.0, 1.0) == 1.0
# ---- before
def step(m, g):
    return 0.9 * m + 0.1 * g
# ---- after
def step(m, g):
    return 0.95 * m + 0.01 * g
