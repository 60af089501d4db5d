# outcome: applied
# reason: scale constant 2 -> 3
# check: table['scale'](2) == 6
# ---- before
scale = lambda x: x * 2
table = {"scale": scale}
# ---- after
# a comment moves it
scale = lambda x: x * 3
table = {"scale": scale}
