# outcome: refused
# reason: class `Layer` is new
# check: scale(2) == 4
# ---- before
def scale(x):
    return x * 2
# ---- after
class Layer:
    pass


def scale(x):
    return x * 2
