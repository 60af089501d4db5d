# outcome: applied
# reason: one constant 1 -> 1.0
# check: type(one()) is float and type(two()) is bool
# undo: type(one()) is int and type(two()) is int
# ---- before
def one():
    return 1


def two():
    return 1
# ---- after
def one():
    return 1.0


def two():
    return True
