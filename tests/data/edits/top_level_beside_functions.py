# outcome: applied
# check: scale(2) == 6 and top_level == ['run']
# undo: scale(2) == 4 and top_level == ['run']
# ---- before
def scale(x):
    return x * 2


top_level.append('run')
# ---- after
# moved down

def scale(x):
    y = x
    return y * 3


top_level.append('run')
