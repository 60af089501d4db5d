# outcome: applied
# check: make()(0) == 2
# undo: make()(0) == 1
# ---- before
def make():
    def add(x, k=1):
        return x + k
    return add
# ---- after
def make():
    def add(x, k=2):
        return x + k
    return add
