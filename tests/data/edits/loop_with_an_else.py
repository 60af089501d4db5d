# outcome: applied
# check: find([1, 2], 5) == 'none' and find([1, 2], 2) == 1
# undo: find([1, 2], 5) is None
# ---- before
def find(values, wanted):
    for place, value in enumerate(values):
        if value == wanted:
            return place
# ---- after
def find(values, wanted):
    for place, value in enumerate(values):
        if value == wanted:
            break
    else:
        return 'none'
    return place
