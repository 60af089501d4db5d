# outcome: applied
# check: layer.rate == 0.2 and other.rate == 0.5
# undo: layer.rate == 0.1 and other.rate == 0.5
# ---- before
class Base:
    rate = 0.1


class Other(Base):
    rate = 0.5


class Layer(Base):
    pass


layer, other = Layer(), Other()
# ---- after
class Base:
    rate = 0.2


class Other(Base):
    rate = 0.5


class Layer(Base):
    pass


layer, other = Layer(), Other()
