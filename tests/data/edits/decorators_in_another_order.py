# outcome: refused
# reason: decorators of `scale` changed
# check: scale(1) == 4
# ---- before
def plus(function):
    return lambda x: function(x) + 2


def twice(function):
    return lambda x: function(x) * 2


@plus
@twice
def scale(x):
    return x
# ---- after
def plus(function):
    return lambda x: function(x) + 2


def twice(function):
    return lambda x: function(x) * 2


@twice
@plus
def scale(x):
    return x
