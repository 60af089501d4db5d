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
