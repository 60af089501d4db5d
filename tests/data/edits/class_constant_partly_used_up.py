# outcome: applied
# reason: `Layer.width` was read by top-level code that has run already (line 3)
# check: Layer.area == 16 and layer.size() == 8
# undo: Layer.area == 16 and layer.size() == 4
# ---- before
class Layer:
    width = 4
    area = width * width

    def size(self):
        return self.width


layer = Layer()
# ---- after
class Layer:
    width = 8
    area = width * width

    def size(self):
        return self.width


layer = Layer()
