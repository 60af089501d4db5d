# outcome: refused
# reason: `scale` was a function and became a class
# check: scale(2) == 4
# ---- before
def scale(x):
    return x * 2
# ---- after
class scale:
    def __init__(self, x):
        self.x = x
