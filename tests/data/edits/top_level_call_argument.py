# outcome: refused
# reason: line 1: `top_level.append('b')` is top-level code, which is never run again
# check: top_level == ['a']
# ---- before
top_level.append('a')
# ---- after
top_level.append('b')
