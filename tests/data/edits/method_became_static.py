# outcome: refused
# reason: Layer.rate` changed
# check: layer.rate() == 3
# ---- before
class Layer:
    def rate(self):
        return 3


layer = Layer()
# ---- after
class Layer:
    @staticmethod
    def rate():
        return 3


layer = Layer()
