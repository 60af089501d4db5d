def logged(function):
    def inner(x):
        return function(x) + 100
    return inner


@logged
def scale(x):
    return x * 2
