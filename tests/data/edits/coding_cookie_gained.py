# outcome: unchanged
# after-as: latin-1
# check: name() == 'ä' and name.__code__.co_firstlineno == 2
# ---- before
def name():
    return 'ä'
# ---- after
# coding: latin-1
def name():
    return 'ä'
