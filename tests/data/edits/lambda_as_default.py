# outcome: refused
# reason: the default `key=lambda v: v * 2` of `pick` is computed
# check: pick(1) == 1
# ---- before
def pick(x, key=lambda v: v):
    return key(x)
# ---- after
def pick(x, key=lambda v: v * 2):
    return key(x)
