# Länge 长度
def größe(x):
    return "ö" * x
