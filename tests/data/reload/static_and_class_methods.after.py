class Layer:
    width = 4

    @staticmethod
    def half(x):
        return x / 4

    @classmethod
    def wide(cls):
        return cls.width * 2
