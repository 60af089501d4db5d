# outcome: applied
# reason: make constant 1 -> 2
# check: held(0) == 2 and make()(0) == 2
# ---- before
def make():
    return lambda x: x + 1


held = make()
# ---- after
def make():
    return lambda x: x + 2


held = make()
