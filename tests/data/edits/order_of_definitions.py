# outcome: unchanged
# check: first() == 1 and second() == 2 and second.__code__.co_firstlineno == 1
# ---- before
def first():
    return 1


def second():
    return 2
# ---- after
def second():
    return 2


def first():
    return 1
