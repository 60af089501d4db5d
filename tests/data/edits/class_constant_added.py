# outcome: applied
# reason: Layer.width new class constant  -> 3
# reason: Layer.__rate new class constant  -> 7
# check: layer.run() == 21
# undo: layer.run() == 1
# ---- before
class Layer:
    """Of a network."""
    depth = 2

    def run(self):
        return 1


layer = Layer()
# ---- after
class Layer:
    """Of a network."""
    depth = 2
    width: int = 3
    __rate = 7

    def run(self):
        return self.width * self.__rate


layer = Layer()
