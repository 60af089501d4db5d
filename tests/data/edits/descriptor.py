# outcome: applied
# check: layer.rate == 2
# undo: layer.rate == 1
# ---- before
class Rate:
    def __get__(self, owner, kind):
        return 1


class Layer:
    rate = Rate()


layer = Layer()
# ---- after
class Rate:
    def __get__(self, owner, kind):
        return 2


class Layer:
    rate = Rate()


layer = Layer()
