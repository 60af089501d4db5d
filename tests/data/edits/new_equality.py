# outcome: applied
# check: Item(1) == Item(1)
# undo: Item(1) != Item(1)
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
