# outcome: applied
# check: double(2) == 5 and registry['scale'](1, 1) == 2
# ---- before
import functools

registry = {}


def register(function):
    registry[function.__name__] = function
    return function


@register
def scale(x, k):
    return x * k


double = functools.partial(scale, k=2)
# ---- after
import functools

registry = {}


def register(function):
    registry[function.__name__] = function
    return function


@register
def scale(x, k):
    return x * k + 1


double = functools.partial(scale, k=2)
