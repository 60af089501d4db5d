# outcome: refused
# reason: has other parameters
# check: one(0) == 1
# ---- before
def make(k):
    def add(x):
        return x + k
    return add


one = make(1)
# ---- after
def make(k):
    def add(x, y=0):
        return x + k + y
    return add


one = make(1)
