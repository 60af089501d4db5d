def make():
    return lambda x: x + 2


held = make()
