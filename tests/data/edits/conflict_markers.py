# outcome: refused
# reason: conflict_markers.py:1: invalid syntax
# check: scale(2) == 4
# later: scale(2) == 6
# ---- before
def scale(x):
    return x * 2
# ---- after
<<<<<<< HEAD
def scale(x):
    return x * 2
=======
def scale(x):
    return x * 3
>>>>>>> other
# ---- later
def scale(x):
    return x * 3
