# outcome: refused
# reason: captured_error.py:10: NameError: name 'missing' is not defined: taken back
# keep: first = scale(X).numpy()
# call: scale(X)
# check: scale(X).numpy().tolist() == [2, 4] and RATE == 1
# later: scale(X).numpy().tolist() == [6, 12]
# ---- before
import dvm_core as dvm

RATE = 1
X = dvm.tensor([1.0, 2.0])


@dvm.jit
def scale(x):
    return x * 2 * RATE
# ---- after
import dvm_core as dvm

RATE = 3
X = dvm.tensor([1.0, 2.0])


@dvm.jit
def scale(x):
    # not there
    return x * 2 * RATE * missing
# ---- later
import dvm_core as dvm

RATE = 3
X = dvm.tensor([1.0, 2.0])


@dvm.jit
def scale(x):
    return x * 2 * RATE
