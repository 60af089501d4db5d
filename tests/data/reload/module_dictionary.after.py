CONFIG = {"rate": 0.2, "steps": 10}
alias = CONFIG


def rate():
    return alias["rate"]
