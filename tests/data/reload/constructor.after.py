class Layer:
    def __init__(self):
        self.width = 8


layer = Layer()
