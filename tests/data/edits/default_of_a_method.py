# outcome: applied
# keep: held = layer.forward
# check: held(2) == 6 and Layer.half(4) == 1 and Layer.wide() == 5
# undo: held(2) == 4 and Layer.half(4) == 2 and Layer.wide() == 3
# ---- before
class Layer:
    def forward(self, x, k=2):
        return x * k

    @staticmethod
    def half(x, by=2):
        return x // by

    @classmethod
    def wide(cls, *, by=3):
        return by


layer = Layer()
# ---- after
class Layer:
    def forward(self, x, k=3):
        return x * k

    @staticmethod
    def half(x, by=4):
        return x // by

    @classmethod
    def wide(cls, *, by=5):
        return by


layer = Layer()
