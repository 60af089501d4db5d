# outcome: applied
# check: Layer.half(4) == 1 and Layer.wide() == 8
# ---- before
class Layer:
    width = 4

    @staticmethod
    def half(x):
        return x / 2

    @classmethod
    def wide(cls):
        return cls.width * 1
# ---- after
class Layer:
    width = 4

    @staticmethod
    def half(x):
        return x / 4

    @classmethod
    def wide(cls):
        return cls.width * 2
