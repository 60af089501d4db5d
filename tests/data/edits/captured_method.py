# outcome: applied
# call: layer.step(X)
# check: layer.step(X).numpy().tolist() == [11, 12]
# undo: layer.step(X).numpy().tolist() == [1, 2]
# ---- before
import dvm_core as dvm

X = dvm.tensor([1.0, 2.0])


class Layer:
    def __init__(self):
        self.run = dvm.jit(self.forward)

    def forward(self, x):
        return x * 1

    def step(self, x):
        return self.run(x)


layer = Layer()
# ---- after
import dvm_core as dvm

X = dvm.tensor([1.0, 2.0])


class Layer:
    def __init__(self):
        self.run = dvm.jit(self.forward)

    def forward(self, x):
        return x + 10

    def step(self, x):
        return self.run(x)


layer = Layer()
