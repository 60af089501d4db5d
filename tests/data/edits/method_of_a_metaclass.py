# outcome: applied
# check: Layer.label() == 'new Layer'
# undo: Layer.label() == 'Layer'
# ---- before
class Meta(type):
    def label(cls):
        return cls.__name__


class Layer(metaclass=Meta):
    pass
# ---- after
class Meta(type):
    def label(cls):
        return 'new ' + cls.__name__


class Layer(metaclass=Meta):
    pass
