# outcome: refused
# reason: taken back
# keep: first = both(X)
# call: both(X)
# check: both(X) == ([2, 4], [2, 3])
# ---- before
import dvm_core as dvm

X = dvm.tensor([1.0, 2.0])


def one(x):
    return x * 2


@dvm.jit
def two(x):
    return one(x), x + 1


def both(x):
    a, b = two(x)
    return a.numpy().tolist(), b.numpy().tolist()
# ---- after
import dvm_core as dvm

X = dvm.tensor([1.0, 2.0])


def one(x):
    return x * 7


@dvm.jit
def two(x):
    return one(x), (x + 1).sum()


def both(x):
    a, b = two(x)
    return a.numpy().tolist(), b.numpy().tolist()
