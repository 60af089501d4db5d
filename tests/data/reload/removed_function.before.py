def helper(x):
    return x * 2


def scale(x):
    return helper(x)
