RATE = 0.3


def rate():
    return RATE
