class Layer:
    def forward(self, x):
        return x
