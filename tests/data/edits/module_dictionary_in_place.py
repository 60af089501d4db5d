# outcome: applied
# check: rate() == 0.4 and Holder.config is CONFIG
# ---- before
CONFIG = {"rate": 0.1, "steps": 10}


class Holder:
    config = CONFIG


def rate():
    return CONFIG["rate"] + Holder.config["rate"]
# ---- after
CONFIG = {"rate": 0.2, "steps": 10}


class Holder:
    config = CONFIG


def rate():
    return CONFIG["rate"] + Holder.config["rate"]
