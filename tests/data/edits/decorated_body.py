# outcome: applied
# reason: scale constant 2 -> 3
# check: scale(2) == 6 and scale.__wrapped__(2) == 6
# ---- before
import functools


def logged(function):
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
    @functools.wraps(function)
    def inner(x):
        return function(x)
    return inner


@logged
def scale(x):
    return x * 3
