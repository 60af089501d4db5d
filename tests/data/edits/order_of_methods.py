# outcome: unchanged
# check: layer.first() == 1 and layer.second() == 2
# ---- before
class Layer:
    def first(self):
        return 1

    def second(self):
        return 2


layer = Layer()
# ---- after
class Layer:
    def second(self):
        return 2

    def first(self):
        return 1


layer = Layer()
