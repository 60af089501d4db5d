def scale(x):
    return helper(x)


def helper(x, k=3):
    return x * k
