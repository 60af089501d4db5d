# outcome: unchanged
# check: scale(2) == 4
# ---- before
def scale(x):
    y: int = x * 2
    return y
# ---- after
def scale(x):
    y: float = x * 2
    return y
