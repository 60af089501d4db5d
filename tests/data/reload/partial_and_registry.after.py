import functools

registry = {}


def register(function):
    registry[function.__name__] = function
    return function


@register
def scale(x, k):
    return x * k + 1


double = functools.partial(scale, k=2)
