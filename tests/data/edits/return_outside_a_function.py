# outcome: refused
# reason: 'return' outside function
# check: scale(2) == 4
# ---- before
def scale(x):
    return x * 2
# ---- after
def scale(x):
    y = x
return y
