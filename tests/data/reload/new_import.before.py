def root(x):
    return x ** 0.5
