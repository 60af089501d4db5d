# outcome: refused
# reason: needs restart
# check: Small.__slots__ == ('x',)
# ---- before
class Small:
    __slots__ = ('x',)

    def value(self):
        return 1
# ---- after
class Small:
    __slots__ = ('x', 'y')

    def value(self):
        return 1
