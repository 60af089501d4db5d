# outcome: applied
# reason: act inserted  -> y = abs(x)
# check: act(-3) == 3
# ---- before
def act(x):
    return max(x, 0)
# ---- after
def act(x):
    y = abs(x)
    return y
