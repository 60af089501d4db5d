# outcome: applied
# reason: logged.<locals>.inner body
# check: scale(2) == 104
# ---- before
def logged(function):
    def inner(x):
        return function(x)
    return inner


@logged
def scale(x):
    return x * 2
# ---- after
def logged(function):
    def inner(x):
        return function(x) + 100
    return inner


@logged
def scale(x):
    return x * 2
