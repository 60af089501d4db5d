# outcome: applied
# reason: `Rate.rate#2` is gone from the text; it stays defined
# check: thing.rate == 2 and setattr(thing, 'rate', 5) is None
# undo: thing.rate == 1
# ---- before
class Rate:
    @property
    def rate(self):
        return 1

    @rate.setter
    def rate(self, value):
        self.kept = value


thing = Rate()
# ---- after
class Rate:
    @property
    def rate(self):
        return 2


thing = Rate()
