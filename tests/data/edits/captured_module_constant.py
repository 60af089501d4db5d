# outcome: applied
# reason: RATE constant 0.5 -> 0.25
# call: step(X)
# check: step(X).numpy().tolist() == [0.25, 0.5]
# undo: step(X).numpy().tolist() == [0.5, 1.0]
# ---- before
import dvm_core as dvm

RATE = 0.5
X = dvm.tensor([1.0, 2.0])


@dvm.jit
def step(x):
    return x * RATE
# ---- after
import dvm_core as dvm

RATE = 0.25
X = dvm.tensor([1.0, 2.0])


@dvm.jit
def step(x):
    return x * RATE
