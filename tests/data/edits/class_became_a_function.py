# outcome: refused
# reason: `Scale` was a class and became a function
# check: isinstance(Scale(), Scale)
# ---- before
class Scale:
    pass
# ---- after
def Scale():
    return 1
