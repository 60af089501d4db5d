def scale(x, *, k=2, j=5):
    return x * k + j
