# outcome: refused
# reason: read only by top-level code that has run already (line 2)
# check: len(table) == 3
# ---- before
SIZE = 3
table = [0] * SIZE
# ---- after
SIZE = 4
table = [0] * SIZE
