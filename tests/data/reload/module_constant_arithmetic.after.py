RATE = 1e-3 * 4


def rate():
    return RATE
