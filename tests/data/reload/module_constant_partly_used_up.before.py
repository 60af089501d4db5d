SIZE = 3
table = [0] * SIZE


def size():
    return SIZE
