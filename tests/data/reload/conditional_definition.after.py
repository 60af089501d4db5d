FAST = True
if FAST:
    def scale(x):
        return x * 3
else:
    def scale(x):
        return x + x
