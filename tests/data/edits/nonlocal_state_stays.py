# outcome: applied
# check: grown(count) == 10 and grown(make()) == 10
# undo: grown(count) == 1 and grown(make()) == 1
# ---- before
def make():
    n = 0

    def count():
        nonlocal n
        n += 1
        return n
    return count


def grown(function):
    before = function()
    return function() - before


count = make()
# ---- after
def make():
    n = 0

    def count():
        nonlocal n
        n += 10
        return n
    return count


def grown(function):
    before = function()
    return function() - before


count = make()
