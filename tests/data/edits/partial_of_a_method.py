# outcome: applied
# check: held(1) == 5 and held_method(1) == 11
# undo: held(1) == 3 and held_method(1) == 2
# ---- before
import functools


class Layer:
    def add(self, x):
        return x + 1


def mul(a, b):
    return a * b


held = functools.partial(mul, 3)
held_method = functools.partial(Layer().add)
# ---- after
import functools


class Layer:
    def add(self, x):
        return x + 10


def mul(a, b):
    return a * b + 2


held = functools.partial(mul, 3)
held_method = functools.partial(Layer().add)
