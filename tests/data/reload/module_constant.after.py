RATE = 0.01


def rate():
    return RATE
