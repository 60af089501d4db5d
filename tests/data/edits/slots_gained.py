# outcome: refused
# reason: class `Small` changed
# check: not hasattr(Small, '__slots__')
# ---- before
class Small:
    def value(self):
        return 1
# ---- after
class Small:
    __slots__ = ('x',)

    def value(self):
        return 1
