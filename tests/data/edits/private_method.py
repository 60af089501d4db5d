# outcome: applied
# check: layer.run() == 7
# undo: layer.run() == 1
# ---- before
class Layer:
    def __more(self, k=1):
        return k

    def run(self):
        return self.__more()


layer = Layer()
# ---- after
class Layer:
    def __more(self, k=7):
        return k

    def run(self):
        return self.__more()


layer = Layer()
