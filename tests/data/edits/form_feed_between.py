# outcome: applied
# check: scale(2) == 6
# ---- before
def first():
    return 1

def scale(x):
    return x * 2
# ---- after
def first():
    return 1

def scale(x):
    return x * 3
