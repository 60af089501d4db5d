# outcome: applied
# check: Layer[3] == 'Layer[3]'
# undo: not hasattr(Layer, '__class_getitem__')
# ---- before
class Layer:
    pass
# ---- after
class Layer:
    def __class_getitem__(cls, n):
        return f'{cls.__name__}[{n}]'
