# outcome: applied
# reason: nothing of it exists in the running program yet
# check: scale(2) == 4
# undo: scale(2) == 4
# ---- before
import sys

if sys.version_info:
    def scale(x):
        return x * 2
else:
    def scale(x):
        return x * 5
# ---- after
import sys

if sys.version_info:
    def scale(x):
        return x * 2
else:
    def scale(x):
        return x * 7
