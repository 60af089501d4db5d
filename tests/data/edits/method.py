# outcome: applied
# reason: Layer.forward constant 2 -> 3
# check: layer.forward(2) == 6 and held(2) == 6
# ---- before
class Layer:
    def forward(self, x):
        return x * 2


layer = Layer()
held = layer.forward
# ---- after
class Layer:
    def forward(self, x):
        return x * 3


layer = Layer()
held = layer.forward
