# outcome: refused
# reason: top_level
# check: top_level == [1, 2]
# ---- before
top_level.append(1)
top_level.append(2)
# ---- after
top_level.append(2)
top_level.append(1)
