# outcome: refused
# reason: `Rate.rate#2` is new and has decorators
# check: thing.rate == 1
# ---- before
class Rate:
    @property
    def rate(self):
        return 1


thing = Rate()
# ---- after
class Rate:
    @property
    def rate(self):
        return 1

    @rate.setter
    def rate(self, value):
        self.kept = value


thing = Rate()
