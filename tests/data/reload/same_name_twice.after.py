def scale(x):
    return x * 20


first = scale


def scale(x):
    return x * 30
