class Layer:
    pass


def scale(x):
    return x * 2
