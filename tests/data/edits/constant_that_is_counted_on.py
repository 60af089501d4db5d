# outcome: refused
# reason: is top-level code
# check: count() == 2
# ---- before
COUNT = 1
COUNT += 1


def count():
    return COUNT
# ---- after
COUNT = 5
COUNT += 1


def count():
    return COUNT
