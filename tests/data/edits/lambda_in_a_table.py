# outcome: refused
# reason: is top-level code
# check: table['twice'](2) == 4
# ---- before
table = {'twice': lambda x: x * 2}
# ---- after
table = {'twice': lambda x: x * 3}
