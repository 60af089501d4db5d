# outcome: unchanged
# check: scale.__doc__ == 'Twice as much.'
# ---- before
def scale(x):
    '''Doubles.'''
    return x * 2
# ---- after
def scale(x):
    '''Twice as much.'''
    return x * 2
