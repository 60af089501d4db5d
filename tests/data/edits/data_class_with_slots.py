# outcome: applied
# check: held.total() == 3 and held.twice() == 2
# undo: held.total() == 2 and not hasattr(held, 'twice')
# ---- before
from dataclasses import dataclass


@dataclass(slots=True)
class Config:
    a: int

    def total(self):
        return self.a + 1


held = Config(1)
# ---- after
from dataclasses import dataclass


@dataclass(slots=True)
class Config:
    a: int

    def total(self):
        return self.a + 2

    def twice(self):
        return self.a * 2


held = Config(1)
