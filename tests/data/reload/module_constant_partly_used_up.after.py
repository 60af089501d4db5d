SIZE = 4
table = [0] * SIZE


def size():
    return SIZE
