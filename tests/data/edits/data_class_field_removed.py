# outcome: refused
# reason: `Config.b` belongs to a data class
# check: Config(1, 3).b == 3
# ---- before
from dataclasses import dataclass


@dataclass
class Config:
    a: int
    b: int = 2
# ---- after
from dataclasses import dataclass


@dataclass
class Config:
    a: int
