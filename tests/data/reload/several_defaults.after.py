def scale(x, k=3, *, j=7):
    return x * k - j
