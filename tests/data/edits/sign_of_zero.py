# outcome: applied
# check: str(zero()) == '-0.0' and str(module_zero()) == '-0.0'
# undo: str(zero()) == '0.0' and str(module_zero()) == '0.0'
# ---- before
ZERO = 0.0


def zero():
    return 0.0


def module_zero():
    return ZERO
# ---- after
ZERO = -0.0


def zero():
    return -0.0


def module_zero():
    return ZERO
