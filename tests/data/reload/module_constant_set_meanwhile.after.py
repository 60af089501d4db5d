RATE = 0.01


def rate():
    return RATE


def decay():
    global RATE
    RATE = RATE / 2


decay()
