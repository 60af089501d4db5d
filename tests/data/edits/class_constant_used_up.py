# outcome: refused
# reason: Layer.width
# check: Layer.width == 4 and Layer.area == 16
# ---- before
class Layer:
    width = 4
    area = width * width
# ---- after
class Layer:
    width = 8
    area = width * width
