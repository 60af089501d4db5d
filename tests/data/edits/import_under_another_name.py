# outcome: applied
# check: text() == '[2]'
# undo: text() == '[1]'
# ---- before
import json as j


def text():
    return j.dumps([1])
# ---- after
import json as js


def text():
    return js.dumps([2])
