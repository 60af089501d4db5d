# outcome: refused
# reason: `Config.__post_init__` is new; the data class's `__init__` was made without it
# check: Config(1).a == 1
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

    def __post_init__(self):
        self.a += 1
