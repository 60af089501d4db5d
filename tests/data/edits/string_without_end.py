# outcome: refused
# reason: string_without_end.py:2: unterminated
# check: name() == 'a'
# later: name() == 'b'
# ---- before
def name():
    return 'a'
# ---- after
def name():
    return 'b
# ---- later
def name():
    return 'b'
