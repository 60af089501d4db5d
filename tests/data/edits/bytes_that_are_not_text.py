# outcome: refused
# after-as: latin-1
# check: name() == 'a'
# later: name() == 'ä'
# ---- before
def name():
    return 'a'
# ---- after
def name():
    return 'ä'
# ---- later
def name():
    return 'ä'
