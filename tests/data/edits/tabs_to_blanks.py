# outcome: unchanged
# check: scale(2) == 4
# ---- before
def scale(x):
	if x:
		return x * 2
	return 0
# ---- after
def scale(x):
    if x:
        return x * 2
    return 0
