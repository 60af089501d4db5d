def scale(x, k=3, j=1):
    return x * k + j
