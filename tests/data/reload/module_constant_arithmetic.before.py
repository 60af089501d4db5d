RATE = 1e-3 * 2


def rate():
    return RATE
