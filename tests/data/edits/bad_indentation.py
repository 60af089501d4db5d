# outcome: refused
# reason: unexpected indent
# check: scale(2) == 4
# ---- before
def scale(x):
    return x * 2
# ---- after
def scale(x):
    y = x
      return y * 2
