# outcome: applied
# check: first([1, 5, 9]) == 9
# undo: first([1, 5, 9]) == 5
# ---- before
def first(values):
    return next(y for x in values if (y := x) > 2)
# ---- after
def first(values):
    return next(y for x in values if (y := x) > 6)
