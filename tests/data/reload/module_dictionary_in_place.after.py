CONFIG = {"rate": 0.2, "steps": 10}


class Holder:
    config = CONFIG


def rate():
    return CONFIG["rate"] + Holder.config["rate"]
