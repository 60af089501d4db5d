# outcome: applied
# check: layer.run() == 7 and not hasattr(layer, '__more')
# undo: layer.run() == 1
# ---- before
class Layer:
    def run(self):
        return 1


layer = Layer()
# ---- after
class Layer:
    def __more(self):
        return 7

    def run(self):
        return self.__more()


layer = Layer()
