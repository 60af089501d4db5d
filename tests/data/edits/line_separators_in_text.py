# outcome: applied
# check: scale(2) == 6 and scale.__code__.co_firstlineno == 5
# ---- before
def name():
    return 'a b'


def scale(x):
    return x * 2
# ---- after
def name():
    return 'a b'


def scale(x):
    return x * 3
