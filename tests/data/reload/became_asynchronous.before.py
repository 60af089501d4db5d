def rows(x):
    return [x]
