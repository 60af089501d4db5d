# outcome: applied
# check: layer.rate(1) == 3
# undo: layer.rate(1) == 2
# ---- before
class Layer:
    rate = lambda self, x: x + 1


layer = Layer()
# ---- after
class Layer:
    rate = lambda self, x: x + 2


layer = Layer()
