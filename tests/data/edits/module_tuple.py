# outcome: applied
# check: betas() == (0.9, 0.99)
# undo: betas() == (0.9, 0.999)
# ---- before
BETAS = (0.9, 0.999)


def betas():
    return BETAS
# ---- after
BETAS = (0.9, 0.99)


def betas():
    return BETAS
