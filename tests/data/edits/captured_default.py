# outcome: applied
# call: step(X)
# check: step(X).numpy().tolist() == [5, 10]
# undo: step(X).numpy().tolist() == [2, 4]
# ---- before
import dvm_core as dvm

X = dvm.tensor([1.0, 2.0])


@dvm.jit
def step(x, k=2):
    return x * k
# ---- after
import dvm_core as dvm

X = dvm.tensor([1.0, 2.0])


@dvm.jit
def step(x, k=5):
    return x * k
