# outcome: applied
# check: count() == 2
# undo: count() == 1
# ---- before
def count():
    n = 1
    return n
# ---- after
def count():
    n = 1

    def bump():
        nonlocal n
        n += 1
    bump()
    return n
