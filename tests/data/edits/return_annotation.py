# outcome: unchanged
# reason: annotations of `scale` changed
# check: scale(2) == 4
# ---- before
def scale(x) -> int:
    return x * 2
# ---- after
def scale(x) -> 'float':
    return x * 2
