# outcome: refused
# reason: the bases of class `Layer` changed
# check: Layer.size == 1
# ---- before
class Base:
    def __init_subclass__(cls, size):
        cls.size = size


class Layer(Base, size=1):
    pass
# ---- after
class Base:
    def __init_subclass__(cls, size):
        cls.size = size


class Layer(Base, size=2):
    pass
