def scale(x):
    '''Twice as much.'''
    return x * 2
