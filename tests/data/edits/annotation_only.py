# outcome: unchanged
# reason: nothing that runs depends on them
# check: scale(2) == 4
# ---- before
def scale(x: int) -> int:
    return x * 2
# ---- after
def scale(x: float) -> float:
    return x * 2
