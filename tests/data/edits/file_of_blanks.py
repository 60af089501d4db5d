# outcome: refused
# reason: the file is empty; the running code stays
# check: scale(2) == 4
# later: scale(2) == 6
# ---- before
def scale(x):
    return x * 2
# ---- after

   

# ---- later
def scale(x):
    return x * 3
