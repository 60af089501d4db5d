# outcome: refused
# reason: `Layer.width` is read only by top-level code that has run already (line 5)
# check: SIZE == 5 and Layer.width == 4
# ---- before
class Layer:
    width = 4


SIZE = Layer.width + 1
# ---- after
class Layer:
    width = 8


SIZE = Layer.width + 1
