# outcome: applied
# check: make()().more() == 2 and kept.value() == 1
# undo: not hasattr(make()(), 'more')
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
            return 1

        def more(self):
            return 2
    return Local


kept = make()()
