# outcome: refused
# reason: `Config.b` belongs to a data class
# check: not hasattr(Config(1), 'b')
# ---- before
from dataclasses import dataclass


@dataclass
class Config:
    a: int
# ---- after
from dataclasses import dataclass


@dataclass
class Config:
    a: int
    b: int = 2
