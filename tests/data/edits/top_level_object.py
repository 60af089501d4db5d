# outcome: refused
# reason: `layer = Layer(3)` is top-level code
# check: layer.width == 2 and top_level == [2]
# ---- before
class Layer:
    def __init__(self, width):
        top_level.append(width)
        self.width = width


layer = Layer(2)
# ---- after
class Layer:
    def __init__(self, width):
        top_level.append(width)
        self.width = width


layer = Layer(3)
