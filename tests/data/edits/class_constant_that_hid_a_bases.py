# outcome: refused
# reason: `A.rate` is gone from the text, and a base has one too
# check: A().get() == 2
# ---- before
class Base:
    rate = 1

    def get(self):
        return self.rate


class A(Base):
    rate = 2
# ---- after
class Base:
    rate = 1

    def get(self):
        return self.rate


class A(Base):
    pass
