# outcome: applied
# check: scale(1) == 3
# undo: scale(1) == 2
# ---- before
scale = lambda x, k=1: x + k
# ---- after
scale = lambda x, k=2: x + k
