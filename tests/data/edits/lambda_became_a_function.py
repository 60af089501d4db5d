# outcome: applied
# check: held(2) == 6
# keep: held = scale
# undo: held(2) == 4
# ---- before
scale = lambda x: x * 2
# ---- after
def scale(x):
    return x * 3
