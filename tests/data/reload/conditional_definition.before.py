FAST = True
if FAST:
    def scale(x):
        return x * 2
else:
    def scale(x):
        return x + x
