# outcome: unchanged
# check: scale(2) == 4 and scale.__code__.co_firstlineno == 7
# ---- before
"""Old words."""


def scale(x):
    return x * 2
# ---- after
"""New words,

on more lines.
"""


def scale(x):
    return x * 2
