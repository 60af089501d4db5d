# outcome: applied
# check: größe(2) == 'öö'
# ---- before
# Länge
def größe(x):
    return "ü" * x
# ---- after
# Länge 长度
def größe(x):
    return "ö" * x
