# outcome: refused
# reason: decorators of `Layer.rate` changed
# check: layer.rate == 3
# ---- before
class Layer:
    @property
    def rate(self):
        return 3


layer = Layer()
# ---- after
class Layer:
    def rate(self):
        return 3


layer = Layer()
