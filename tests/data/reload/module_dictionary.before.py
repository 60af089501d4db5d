CONFIG = {"rate": 0.1, "steps": 10}
alias = CONFIG


def rate():
    return alias["rate"]
