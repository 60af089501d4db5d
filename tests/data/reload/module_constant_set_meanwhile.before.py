RATE = 0.1


def rate():
    return RATE


def decay():
    global RATE
    RATE = RATE / 2


decay()
