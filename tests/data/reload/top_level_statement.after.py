calls = []
calls.append(2)


def scale(x):
    return x * 3
