# outcome: refused
# reason: `A.rate`: of its class a decorator, say, made something else
# check: A.get() == 1
# ---- before
def single(cls):
    return cls()


@single
class A:
    rate = 1

    def get(self):
        return self.rate
# ---- after
def single(cls):
    return cls()


@single
class A:
    rate = 2

    def get(self):
        return self.rate
