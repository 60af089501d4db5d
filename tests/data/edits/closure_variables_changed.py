# outcome: refused
# reason: uses other variables of the function around it (now j, k; its closure was made with k)
# check: one(0) == 1
# ---- before
def make(k):
    j = 1
    def add(x):
        return x + k
    return add, j


one = make(1)[0]
# ---- after
def make(k):
    j = 1
    def add(x):
        return x + k + j
    return add, j


one = make(1)[0]
