# outcome: refused
# reason: of class `Config` changed
# check: Config().a == []
# ---- before
from dataclasses import dataclass, field


@dataclass
class Config:
    a: list = field(default_factory=list)
# ---- after
from dataclasses import dataclass, field


@dataclass
class Config:
    a: list = field(default_factory=lambda: [1])
