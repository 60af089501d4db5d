# outcome: refused
# reason: `import no_such_module_anywhere` failed: ModuleNotFoundError
# check: root(4) == 2.0
# ---- before
def root(x):
    return x ** 0.5
# ---- after
import no_such_module_anywhere


def root(x):
    return no_such_module_anywhere.sqrt(x)
