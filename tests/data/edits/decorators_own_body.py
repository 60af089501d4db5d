# outcome: applied
# check: scale(2) == 4
# undo: scale(2) == 4
# ---- before
import functools


def logged(function):
    name = function.__name__

    @functools.wraps(function)
    def inner(x):
        return function(x)
    return inner


@logged
def scale(x):
    return x * 2
# ---- after
import functools


def logged(function):
    name = 'the ' + function.__name__

    @functools.wraps(function)
    def inner(x):
        return function(x)
    return inner


@logged
def scale(x):
    return x * 2
