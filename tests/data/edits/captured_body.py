# outcome: applied
# reason: scale constant 2 -> 3
# call: scale(X)
# check: scale(X).numpy().tolist() == [3, 6]
# undo: scale(X).numpy().tolist() == [2, 4]
# ---- before
import dvm_core as dvm

X = dvm.tensor([1.0, 2.0])


@dvm.jit
def scale(x):
    return x * 2
# ---- after
import dvm_core as dvm

X = dvm.tensor([1.0, 2.0])


@dvm.jit
def scale(x):
    return x * 3
