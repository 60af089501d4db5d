# outcome: applied
# reason: Layer.__rate class constant 1 -> 7
# check: layer.run() == 7
# undo: layer.run() == 1
# ---- before
class Layer:
    __rate = 1

    def run(self):
        return self.__rate


layer = Layer()
# ---- after
class Layer:
    __rate = 7

    def run(self):
        return self.__rate


layer = Layer()
