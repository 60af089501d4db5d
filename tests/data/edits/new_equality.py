# outcome: applied
# check: Item(1) == Item(1) and Item.__hash__ is None
# reason: its objects are no longer keys
# undo: Item(1) != Item(1) and len({Item(1)}) == 1
# ---- before
class Item:
    def __init__(self, n):
        self.n = n
# ---- after
class Item:
    def __init__(self, n):
        self.n = n

    def __eq__(self, other):
        return self.n == other.n
