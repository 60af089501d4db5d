class Layer:
    def __init__(self):
        self.width = 4


layer = Layer()
