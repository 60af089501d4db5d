# outcome: applied
# check: names() == ['b', 'a']
# undo: names() == ['a', 'b']
# ---- before
TABLE = {'a': 1, 'b': 2}


def names():
    return list(TABLE)
# ---- after
TABLE = {'b': 2, 'a': 1}


def names():
    return list(TABLE)
