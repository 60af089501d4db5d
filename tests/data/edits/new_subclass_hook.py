# outcome: applied
# check: type('New', (Layer,), {}).seen == 'New'
# undo: not hasattr(type('New', (Layer,), {}), 'seen')
# ---- before
class Layer:
    pass
# ---- after
class Layer:
    def __init_subclass__(cls):
        cls.seen = cls.__name__
