# outcome: applied
# before-as: crlf
# after-as: crlf
# reason: scale constant 2 -> 3
# check: scale(2) == 6
# ---- before
def scale(x):
    return x * 2
# ---- after
def scale(x):
    return x * 3
