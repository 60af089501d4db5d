# outcome: refused
# reason: belongs to a class with __slots__
# check: Small.__slots__ == 'x'
# ---- before
class Small:
    __slots__ = 'x'
# ---- after
class Small:
    __slots__ = 'y'
