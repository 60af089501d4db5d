# outcome: refused
# reason: Layer.width
# check: Layer().size() == 4
# ---- before
class Layer:
    width = 4

    def size(self, n=width):
        return n
# ---- after
class Layer:
    width = 8

    def size(self, n=width):
        return n
