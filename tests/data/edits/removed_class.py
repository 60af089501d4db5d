# outcome: unchanged
# reason: `Layer` is gone from the text
# check: layer.value() == 1
# ---- before
class Layer:
    def value(self):
        return 1


layer = Layer()
# ---- after
layer = Layer()
