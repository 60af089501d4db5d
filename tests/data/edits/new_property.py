# outcome: applied
# check: layer.rate == 3
# undo: not hasattr(layer, 'rate')
# ---- before
class Layer:
    def name(self):
        return 'layer'


layer = Layer()
# ---- after
class Layer:
    def name(self):
        return 'layer'

    @property
    def rate(self):
        return 3


layer = Layer()
