# outcome: applied
# reason: `Layer.old` is gone from the text
# check: layer.run() == 2 and layer.old() == 1
# undo: layer.run() == 1
# ---- before
class Layer:
    def old(self):
        return 1

    def run(self):
        return self.old()


layer = Layer()
# ---- after
class Layer:
    def new(self):
        return 2

    def run(self):
        return self.new()


layer = Layer()
