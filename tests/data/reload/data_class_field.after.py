from dataclasses import dataclass


@dataclass
class Config:
    rate: float = 0.2


config = Config()
