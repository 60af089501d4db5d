# outcome: unchanged
# reason: `scale` is gone from the text
# check: scale(2) == 4
# ---- before
def scale(x):
    return x * 2
# ---- after
# soon to come
