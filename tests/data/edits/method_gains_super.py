# outcome: refused
# reason: `Layer.width` uses other variables
# check: layer.width() == 2
# ---- before
class Base:
    def width(self):
        return 1


class Layer(Base):
    def width(self):
        return 2


layer = Layer()
# ---- after
class Base:
    def width(self):
        return 1


class Layer(Base):
    def width(self):
        return super().width() + 1


layer = Layer()
