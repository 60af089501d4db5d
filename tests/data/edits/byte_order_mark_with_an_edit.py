# outcome: applied
# before-as: utf-8-sig
# after-as: utf-8-sig crlf
# check: name() == 'größer'
# undo: name() == 'groß'
# ---- before
def name():
    return 'groß'
# ---- after
def name():
    return 'größer'
