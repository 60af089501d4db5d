# outcome: applied
# check: table['scale'](2) == 6 and scale(2) == 6
# undo: table['scale'](2) == 4
# ---- before
table = {}


class Registry:
    @classmethod
    def add(cls, function):
        table[function.__name__] = function
        return function


@Registry.add
def scale(x):
    return x * 2
# ---- after
table = {}


class Registry:
    @classmethod
    def add(cls, function):
        table[function.__name__] = function
        return function


@Registry.add
def scale(x):
    return x * 3
