# outcome: refused
# reason: read only by top-level code
# check: rate() == 0.1
# ---- before
CONFIG = {"rate": 0.1, "steps": 10}
alias = CONFIG


def rate():
    return alias["rate"]
# ---- after
CONFIG = {"rate": 0.2, "steps": 10}
alias = CONFIG


def rate():
    return alias["rate"]
