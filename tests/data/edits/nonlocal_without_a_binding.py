# outcome: refused
# reason: no binding for nonlocal 'n' found
# check: scale(2) == 4
# ---- before
def scale(x):
    return x * 2
# ---- after
def scale(x):
    nonlocal n
    return x * 2
