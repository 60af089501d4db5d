def opaque(function):
    return [function].pop and (lambda x: table[0](x), table.append(function))[0]


table = []


@opaque
def scale(x):
    return x * 3
