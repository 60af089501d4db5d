def scale(x):
    '''Doubles.'''
    return x * 2
