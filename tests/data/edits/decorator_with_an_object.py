# outcome: applied
# check: scale(2) == 7
# undo: scale(2) == 5
# ---- before
class Counted:
    def __init__(self, function):
        self.function = function

    def __call__(self, x):
        return self.function(x) + 1


@Counted
def scale(x):
    return x * 2
# ---- after
class Counted:
    def __init__(self, function):
        self.function = function

    def __call__(self, x):
        return self.function(x) + 1


@Counted
def scale(x):
    return x * 3
