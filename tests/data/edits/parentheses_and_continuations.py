# outcome: unchanged
# check: total(1, 2) == 7
# ---- before
def total(a, b):
    return a + b * 3
# ---- after
def total(
    a,
    b,
):
    return (a
            + (b * 3))
