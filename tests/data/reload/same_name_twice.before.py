def scale(x):
    return x * 2


first = scale


def scale(x):
    return x * 3
