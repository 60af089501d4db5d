# outcome: refused
# reason: parameters of `Layer.forward` changed
# check: layer.forward(2) == 4
# ---- before
class Layer:
    def forward(self, x):
        return x * 2


layer = Layer()
# ---- after
class Layer:
    def forward(self, x, scale):
        return x * scale


layer = Layer()
