# outcome: refused
# reason: taken back
# keep: first = scale(X).numpy()
# call: scale(X)
# check: scale(X).numpy().tolist() == [2, 4]
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
    return x * 2, x
