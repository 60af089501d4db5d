# outcome: applied
# check: kind() == 'ValueError'
# undo: kind() == 'KeyError'
# ---- before
def fail():
    raise KeyError('x')


def kind():
    try:
        fail()
    except Exception as error:
        return type(error).__name__
# ---- after
def fail():
    raise ValueError('x') from None


def kind():
    try:
        fail()
    except Exception as error:
        return type(error).__name__
