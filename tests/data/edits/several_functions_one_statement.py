# outcome: refused
# reason: `top_level.append('later')` is top-level code
# check: a() == 1 and top_level == []
# ---- before
def a():
    return 1
# ---- after
def a():
    return 10


top_level.append('later')
