# outcome: refused
# reason: is top-level code
# check: scale(2) == 4
# ---- before
import sys


def scale(x):
    return x * 2
# ---- after
import sys

if sys.version_info:
    def scale(x):
        return x * 3
