# outcome: refused
# reason: decorators of `Config` changed
# check: setattr(Config(1), 'a', 2) is None
# ---- before
from dataclasses import dataclass


@dataclass
class Config:
    a: int
# ---- after
from dataclasses import dataclass


@dataclass(frozen=True)
class Config:
    a: int
