# outcome: refused
# reason: the bases of class `Layer` changed
# check: type(Layer) is type
# ---- before
import abc


class Layer:
    def value(self):
        return 1
# ---- after
import abc


class Layer(metaclass=abc.ABCMeta):
    def value(self):
        return 1
