# outcome: applied
# before-as: latin-1
# after-as: latin-1
# reason: name constant 'ä' -> 'ö'
# check: name() == 'ö'
# undo: name() == 'ä'
# ---- before
# -*- coding: latin-1 -*-
def name():
    return 'ä'
# ---- after
# -*- coding: latin-1 -*-
def name():
    return 'ö'
