# outcome: applied
# check: (a < b, a >= b) == (False, True)
# undo: (a < b, a >= b) == (True, False)
# ---- before
import functools


@functools.total_ordering
class Item:
    def __init__(self, n):
        self.n = n

    def __eq__(self, other):
        return self.n == other.n

    def __lt__(self, other):
        return self.n < other.n


a, b = Item(1), Item(2)
# ---- after
import functools


@functools.total_ordering
class Item:
    def __init__(self, n):
        self.n = n

    def __eq__(self, other):
        return self.n == other.n

    def __lt__(self, other):
        return self.n > other.n


a, b = Item(1), Item(2)
