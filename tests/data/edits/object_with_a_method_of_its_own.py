# outcome: applied
# check: layer.run(2) == 6
# undo: layer.run(2) == 4
# ---- before
class Layer:
    def forward(self, x):
        return x * 2


layer = Layer()
layer.run = layer.forward
# ---- after
class Layer:
    def forward(self, x):
        return x * 3


layer = Layer()
layer.run = layer.forward
