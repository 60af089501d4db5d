# outcome: applied
# check: grown() == 10 and COUNT > 0
# undo: grown() == 1
# ---- before
COUNT = 0


def bump():
    global COUNT
    COUNT += 1


def grown():
    before = COUNT
    bump()
    return COUNT - before
# ---- after
COUNT = 0


def bump():
    global COUNT
    COUNT += 10


def grown():
    before = COUNT
    bump()
    return COUNT - before
