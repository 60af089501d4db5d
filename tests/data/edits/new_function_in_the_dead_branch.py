# outcome: refused
# reason: is top-level code
# check: 'helper' not in scale.__globals__
# ---- before
import sys


def scale(x):
    return x


if not sys.version_info:
    def other():
        return 1
# ---- after
import sys


def scale(x):
    return x


if not sys.version_info:
    def other():
        return 1

    def helper():
        return 2
