# how much larger


def scale(x):
    # twice
    return x * 2
