# outcome: refused
# reason: `rows` was a function and became a generator
# check: rows(1) == [1]
# ---- before
def rows(x):
    return [x]
# ---- after
def rows(x):
    yield x
