# outcome: applied
# check: kept(0) == 7 and outer()()(0) == 7
# undo: kept(0) == 1 and outer()()(0) == 1
# ---- before
def outer():
    def middle():
        def inner(x):
            return x + 1
        return inner
    return middle


kept = outer()()
# ---- after
def outer():
    def middle():
        def inner(x):
            return x + 7
        return inner
    return middle


kept = outer()()
