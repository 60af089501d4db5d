# outcome: applied
# keep: first = layer.scale(2)
# reason: what `Layer.scale` had cached is dropped
# check: first == 4 and layer.scale(2) == 6 and other(1) == 1
# undo: layer.scale(2) == 4
# ---- before
from functools import cache


class Layer:
    @cache
    def scale(self, x):
        return x * 2


@cache
def other(x):
    return x


layer = Layer()
# ---- after
from functools import cache


class Layer:
    @cache
    def scale(self, x):
        return x * 3


@cache
def other(x):
    return x


layer = Layer()
