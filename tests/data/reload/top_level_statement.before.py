calls = []
calls.append(1)


def scale(x):
    return x * 2
