# outcome: refused
# reason: `W = dvm.tensor([5.0])` is top-level code
# call: scale(X)
# check: scale(X).numpy().tolist() == [3, 6]
# ---- before
import dvm_core as dvm

W = dvm.tensor([3.0])
X = dvm.tensor([1.0, 2.0])


@dvm.jit
def scale(x):
    return x * W
# ---- after
import dvm_core as dvm

W = dvm.tensor([5.0])
X = dvm.tensor([1.0, 2.0])


@dvm.jit
def scale(x):
    return x * W
