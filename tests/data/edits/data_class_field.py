# outcome: refused
# reason: belongs to a data class
# check: Config().rate == 0.1
# ---- before
from dataclasses import dataclass


@dataclass
class Config:
    rate: float = 0.1


config = Config()
# ---- after
from dataclasses import dataclass


@dataclass
class Config:
    rate: float = 0.2


config = Config()
