def scale(x, k=2, *, j=1):
    return x * k + j
