# outcome: refused
# check: layer.depth() == 2
# ---- before
class Layer:
    def depth(self):
        return 2


layer = Layer()
# ---- after
class Layer:
    depth = 2


layer = Layer()
