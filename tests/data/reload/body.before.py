def act(x):
    return max(x, 0)
