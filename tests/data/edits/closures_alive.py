# outcome: applied
# check: one(0) == 10 and two(0) == 20 and make(3)(0) == 30
# ---- before
def make(k):
    def add(x):
        return x + k
    return add


one, two = make(1), make(2)
# ---- after
def make(k):
    def add(x):
        return x + k * 10
    return add


one, two = make(1), make(2)
