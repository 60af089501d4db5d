# outcome: applied
# check: name() == 'JSON'
# ---- before
try:
    import json as codec
except ImportError:
    codec = None


def name():
    return codec.__name__
# ---- after
try:
    import json as codec
except ImportError:
    codec = None


def name():
    return codec.__name__.upper()
