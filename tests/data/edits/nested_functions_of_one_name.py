# outcome: applied
# check: (a(), b()) == (10, 20)
# undo: (a(), b()) == (1, 2)
# ---- before
def make(k):
    if k:
        def inner():
            return 1
    else:
        def inner():
            return 2
    return inner


a, b = make(True), make(False)
# ---- after
def make(k):
    if k:
        def inner():
            return 10
    else:
        def inner():
            return 20
    return inner


a, b = make(True), make(False)
