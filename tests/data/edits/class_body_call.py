# outcome: refused
# reason: of class `Layer` changed
# check: Layer.size == 3
# ---- before
class Layer:
    size = len('abc')
# ---- after
class Layer:
    size = len('abcd')
