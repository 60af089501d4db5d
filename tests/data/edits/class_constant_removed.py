# outcome: applied
# reason: `Layer.width` is gone from the text; it stays defined in the running program until restart
# check: layer.run() == 5 and layer.width == 3
# undo: layer.run() == 3
# ---- before
class Layer:
    width = 3

    def run(self):
        return self.width


layer = Layer()
# ---- after
class Layer:
    def run(self):
        return 5


layer = Layer()
