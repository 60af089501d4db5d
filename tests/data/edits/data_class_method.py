# outcome: applied
# check: held.total() == 7 and held == Config(1)
# undo: held.total() == 2
# ---- before
from dataclasses import dataclass


@dataclass(frozen=True)
class Config:
    a: int

    def total(self):
        return self.a + 1


held = Config(1)
# ---- after
from dataclasses import dataclass


@dataclass(frozen=True)
class Config:
    a: int

    def total(self):
        return self.a + 6


held = Config(1)
