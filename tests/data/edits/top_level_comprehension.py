# outcome: refused
# reason: is top-level code
# check: SIZES == [1, 2]
# ---- before
SIZES = [n + 1 for n in range(2)]
# ---- after
SIZES = [n + 2 for n in range(2)]
