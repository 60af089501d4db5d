# outcome: refused
# reason: decorators of `scale` changed
# check: scale(2) == 20
# ---- before
def times(n):
    def wrap(function):
        return lambda x: function(x) * n
    return wrap


@times(10)
def scale(x):
    return x
# ---- after
def times(n):
    def wrap(function):
        return lambda x: function(x) * n
    return wrap


@times(100)
def scale(x):
    return x
