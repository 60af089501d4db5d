def first(x):
    extra = 1
    return x + extra


def second(x):
    return x * 2
