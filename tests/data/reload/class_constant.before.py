class Layer:
    width = 4
    name: str = "a"

    def area(self):
        return self.width ** 2


layer = Layer()
