# outcome: refused
# reason: `Layer.rate` belongs to a class that Registry made
# check: not hasattr(Layer, "rate")
# ---- before
class Registry(type):
    def __init__(cls, name, bases, names):
        cls.made = sorted(name for name in names if not name.startswith("__"))


class Layer(metaclass=Registry):
    width = 3
# ---- after
class Registry(type):
    def __init__(cls, name, bases, names):
        cls.made = sorted(name for name in names if not name.startswith("__"))


class Layer(metaclass=Registry):
    width = 3
    rate = 7
