# outcome: refused
# reason: `table['a'] = 2` is top-level code
# check: table['a'] == 1
# ---- before
table = {}
table['a'] = 1
# ---- after
table = {}
table['a'] = 2
