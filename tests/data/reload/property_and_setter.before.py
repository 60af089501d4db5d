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
