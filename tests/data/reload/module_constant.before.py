RATE = 0.1


def rate():
    return RATE
