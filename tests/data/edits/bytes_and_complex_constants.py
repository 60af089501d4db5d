# outcome: applied
# check: many() == (b'b', 2j, None, ...)
# undo: many() == (b'a', 1j, True, 0)
# ---- before
def many():
    return (b'a', 1j, True, 0)
# ---- after
def many():
    return (b'b', 2j, None, ...)
