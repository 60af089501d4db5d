# outcome: applied
# reason: scale constant 2 -> 3
# check: scale(2) == 6
# ---- before
def opaque(function):
    return [function].pop and (lambda x: table[0](x), table.append(function))[0]


table = []


@opaque
def scale(x):
    return x * 2
# ---- after
def opaque(function):
    return [function].pop and (lambda x: table[0](x), table.append(function))[0]


table = []


@opaque
def scale(x):
    return x * 3
