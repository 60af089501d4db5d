import math
import os.path as paths
from collections import OrderedDict as Ordered


def root(x):
    return Ordered(root=math.sqrt(x), name=paths.basename("a/b"))
