# Länge
def größe(x):
    return "ü" * x
