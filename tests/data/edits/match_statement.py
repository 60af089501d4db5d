# outcome: applied
# check: kind([1, 2]) == 'pair' and kind({'a': 1}) == 'named' and kind(3) == 'other'
# undo: kind([1, 2]) == 'pair' and kind({'a': 1}) == 'other'
# ---- before
def kind(value):
    match value:
        case [_, _]:
            return 'pair'
        case _:
            return 'other'
# ---- after
def kind(value):
    match value:
        case [_, _]:
            return 'pair'
        case {'a': _}:
            return 'named'
        case _:
            return 'other'
