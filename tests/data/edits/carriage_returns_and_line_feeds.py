# outcome: unchanged
# after-as: crlf
# check: scale(2) == 'a\nb'
# ---- before
def scale(x):
    return """a
b"""
# ---- after
def scale(x):
    return """a
b"""
