# outcome: applied
# check: sizes() == (1, 2)
# undo: sizes() == [1, 2]
# ---- before
SIZES = [1, 2]


def sizes():
    return SIZES
# ---- after
SIZES = (1, 2)


def sizes():
    return SIZES
