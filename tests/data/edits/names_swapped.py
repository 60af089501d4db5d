# outcome: applied
# keep: held = first
# check: (first(), second(), held()) == (20, 10, 20)
# undo: (first(), second(), held()) == (1, 2, 1)
# ---- before
def first():
    return 1


def second():
    return 2
# ---- after
def second():
    return 10


def first():
    return 20
