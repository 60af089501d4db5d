# outcome: applied
# reason: Rate.rate#2
# check: (setattr(thing, 'rate', 2), thing.rate)[1] == 30
# ---- before
class Rate:
    def __init__(self):
        self._rate = 1.0

    @property
    def rate(self):
        return self._rate

    @rate.setter
    def rate(self, value):
        self._rate = value


thing = Rate()
# ---- after
class Rate:
    def __init__(self):
        self._rate = 1.0

    @property
    def rate(self):
        return self._rate * 10

    @rate.setter
    def rate(self, value):
        self._rate = value + 1


thing = Rate()
