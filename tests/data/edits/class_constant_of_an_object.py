# outcome: applied
# check: layer.rate == 0.9 and Layer.rate == 0.2
# undo: layer.rate == 0.9 and Layer.rate == 0.1
# ---- before
class Layer:
    rate = 0.1


layer = Layer()
layer.rate = 0.9
# ---- after
class Layer:
    rate = 0.2


layer = Layer()
layer.rate = 0.9
