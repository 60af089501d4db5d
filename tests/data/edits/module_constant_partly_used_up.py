# outcome: applied
# reason: has run already (line 2); what that made keeps the value it read
# check: len(table) == 3 and size() == 4
# ---- before
SIZE = 3
table = [0] * SIZE


def size():
    return SIZE
# ---- after
SIZE = 4
table = [0] * SIZE


def size():
    return SIZE
