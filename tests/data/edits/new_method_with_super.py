# outcome: applied
# check: layer.width() == 2
# undo: layer.width() == 1
# ---- before
class Base:
    def width(self):
        return 1


class Layer(Base):
    def name(self):
        return 'layer'


layer = Layer()
# ---- after
class Base:
    def width(self):
        return 1


class Layer(Base):
    def name(self):
        return 'layer'

    def width(self):
        return super().width() + 1


layer = Layer()
