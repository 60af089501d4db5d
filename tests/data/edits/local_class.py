# outcome: applied
# check: kept.value() == 2 and make()().value() == 2
# undo: kept.value() == 1 and make()().value() == 1
# ---- before
def make():
    class Local:
        def value(self):
            return 1
    return Local


kept = make()()
# ---- after
def make():
    class Local:
        def value(self):
            return 2
    return Local


kept = make()()
