def assistant(x):
    return x * 3


def scale(x):
    return assistant(x)
