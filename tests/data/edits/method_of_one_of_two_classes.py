# outcome: applied
# check: a.value() == 1 and b.value() == 20 and (a.rate, b.rate) == (1, 20)
# undo: a.value() == 1 and b.value() == 2 and (a.rate, b.rate) == (1, 2)
# ---- before
class A:
    def value(self):
        return 1

    @property
    def rate(self):
        return 1


class B:
    def value(self):
        return 2

    @property
    def rate(self):
        return 2


a, b = A(), B()
# ---- after
class A:
    def value(self):
        return 1

    @property
    def rate(self):
        return 1


class B:
    def value(self):
        return 20

    @property
    def rate(self):
        return 20


a, b = A(), B()
