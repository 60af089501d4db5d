def act(x):
    y = abs(x)
    return y
