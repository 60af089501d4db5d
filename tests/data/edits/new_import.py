# outcome: applied
# reason: math new import
# check: root(4) == {'root': 2.0, 'name': 'b'}
# ---- before
def root(x):
    return x ** 0.5
# ---- after
import math
import os.path as paths
from collections import OrderedDict as Ordered


def root(x):
    return Ordered(root=math.sqrt(x), name=paths.basename("a/b"))
