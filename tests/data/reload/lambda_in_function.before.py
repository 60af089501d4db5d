def make():
    return lambda x: x + 1


held = make()
