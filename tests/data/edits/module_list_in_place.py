# outcome: applied
# keep: held = WIDTHS
# check: held == [8, 16, 32] and held is WIDTHS and total() == 56
# undo: held == [8, 16] and held is WIDTHS and total() == 24
# ---- before
WIDTHS = [8, 16]


def total():
    return sum(WIDTHS)
# ---- after
WIDTHS = [8, 16, 32]


def total():
    return sum(WIDTHS)
