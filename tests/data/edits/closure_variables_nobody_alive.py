# outcome: applied
# check: make(1)[0](0) == 2
# ---- before
def make(k):
    j = 1
    def add(x):
        return x + k
    return add, j
# ---- after
def make(k):
    j = 1
    def add(x):
        return x + k + j
    return add, j
