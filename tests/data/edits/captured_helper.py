# outcome: applied
# call: step(X)
# check: step(X).numpy().tolist() == [4, 5]
# undo: step(X).numpy().tolist() == [2, 3]
# ---- before
import dvm_core as dvm

X = dvm.tensor([1.0, 2.0])


def shift(x):
    return x + 1


@dvm.jit
def step(x):
    return shift(x)
# ---- after
import dvm_core as dvm

X = dvm.tensor([1.0, 2.0])


def shift(x):
    return x + 3


@dvm.jit
def step(x):
    return shift(x)
