import no_such_module_anywhere


def root(x):
    return no_such_module_anywhere.sqrt(x)
