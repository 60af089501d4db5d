import functools


def logged(function):
    @functools.wraps(function)
    def inner(x):
        return function(x)
    return inner


@logged
def scale(x):
    return x * 3
