CONFIG = {"rate": 0.1, "steps": 10}


class Holder:
    config = CONFIG


def rate():
    return CONFIG["rate"] + Holder.config["rate"]
