# outcome: applied
# reason: `Layer.__init__` has run for the objects that exist: they keep what it made
# check: layer.width == 4 and Layer().width == 8
# ---- before
class Layer:
    def __init__(self):
        self.width = 4


layer = Layer()
# ---- after
class Layer:
    def __init__(self):
        self.width = 8


layer = Layer()
