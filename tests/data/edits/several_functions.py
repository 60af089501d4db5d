# outcome: applied
# check: (a(), b(), C.c(), d()) == (10, 20, 30, 40)
# undo: (a(), b(), C.c()) == (1, 2, 3) and 'd' not in a.__globals__
# ---- before
def a():
    return 1


def b(k=2):
    return k


class C:
    @staticmethod
    def c():
        return 3
# ---- after
def a():
    return 10


def b(k=20):
    return k


class C:
    @staticmethod
    def c():
        return 30


def d():
    return 40
