# outcome: unchanged
# check: scale(2, 1) == 5 and scale.__code__.co_firstlineno == 1
# ---- before
def scale(x, y):
    return (x * 2 + y)
# ---- after
def scale(
    x,
    y,
):
    return (
        x * 2
        + y
    )
