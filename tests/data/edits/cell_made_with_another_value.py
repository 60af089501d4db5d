# outcome: applied
# check: kept(0) == 1 and make()(0) == 2
# undo: kept(0) == 1 and make()(0) == 1
# ---- before
def make():
    k = 1

    def add(x):
        return x + k
    return add


kept = make()
# ---- after
def make():
    k = 2

    def add(x):
        return x + k
    return add


kept = make()
