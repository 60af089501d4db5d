# outcome: applied
# reason: scale constant 2 -> 3
# check: scale(2) == 6
# ---- before
FAST = True
if FAST:
    def scale(x):
        return x * 2
else:
    def scale(x):
        return x + x
# ---- after
FAST = True
if FAST:
    def scale(x):
        return x * 3
else:
    def scale(x):
        return x + x
