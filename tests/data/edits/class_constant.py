# outcome: applied
# reason: Layer.width class constant 4 -> 8
# check: layer.area() == 64
# ---- before
class Layer:
    width = 4
    name: str = "a"

    def area(self):
        return self.width ** 2


layer = Layer()
# ---- after
class Layer:
    width = 8
    name: str = "a"

    def area(self):
        return self.width ** 2


layer = Layer()
