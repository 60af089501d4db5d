# outcome: applied
# reason: Base.value new function
# check: layer.value() == 1 and Base().value() == 2
# undo: layer.value() == 1 and not hasattr(Base, 'value')
# ---- before
class Base:
    pass


class Layer(Base):
    def value(self):
        return 1


layer = Layer()
# ---- after
class Base:
    def value(self):
        return 2


class Layer(Base):
    pass


layer = Layer()
