# outcome: refused
# reason: belongs to a named tuple
# check: Point() == (1,)
# ---- before
from typing import NamedTuple


class Point(NamedTuple):
    x: int = 1
# ---- after
from typing import NamedTuple


class Point(NamedTuple):
    x: int = 2
