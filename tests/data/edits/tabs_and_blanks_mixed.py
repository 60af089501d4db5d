# outcome: refused
# reason: inconsistent use of tabs
# check: scale(2) == 4
# ---- before
def scale(x):
    if x:
        return x * 2
# ---- after
def scale(x):
    if x:
	return x * 2
