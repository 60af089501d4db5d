# outcome: refused
# reason: the bases of class `Layer` changed
# check: not issubclass(Layer, Base)
# ---- before
class Base:
    pass


class Layer:
    pass
# ---- after
class Base:
    pass


class Layer(Base):
    pass
