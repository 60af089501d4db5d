class Layer:
    __slots__ = ("width",)

    def forward(self, x):
        return x
