# outcome: applied
# check: make()().size == 2 and kept.size == 1
# undo: make()().size == 1
# ---- before
def make():
    class Local:
        size = 1
    return Local


kept = make()()
# ---- after
def make():
    class Local:
        size = 2
    return Local


kept = make()()
