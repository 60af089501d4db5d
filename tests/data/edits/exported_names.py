# outcome: applied
# check: __all__ == ['scale', 'twice'] and twice(2) == 4
# undo: __all__ == ['scale']
# ---- before
__all__ = ['scale']


def scale(x):
    return x * 2
# ---- after
__all__ = ['scale', 'twice']


def scale(x):
    return x * 2


def twice(x):
    return x * 2
