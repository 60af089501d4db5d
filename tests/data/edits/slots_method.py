# outcome: applied
# check: held.value() == 2
# undo: held.value() == 1
# ---- before
class Small:
    __slots__ = ('x',)

    def value(self):
        return 1


held = Small()
# ---- after
class Small:
    __slots__ = ('x',)

    def value(self):
        return 2


held = Small()
