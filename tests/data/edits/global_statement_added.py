# outcome: applied
# check: bump() == 2 and bump.__globals__['COUNT'] == 2
# undo: bump() == 1
# ---- before
COUNT = 0


def bump():
    COUNT = 1
    return COUNT
# ---- after
COUNT = 0


def bump():
    global COUNT
    COUNT = 2
    return COUNT
